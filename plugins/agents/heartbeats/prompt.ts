import { type Contribution, iso, messageOf, type PluginKernel, within } from '../../../kernel/plugin.js'
import type { Heartbeat } from '../../../schemas/agents/sidecars.js'
import type { PolicyDiagnostic } from '../../../schemas/sessions.js'
import type { SessionInfo, SessionsApi } from '../../work/sessions/api.js'
import { cutText } from '../sidecars/api.js'
import { type WakeContext, WakeContexts } from './api.js'

const NOTICE =
  'This is a heartbeat: a scheduled wake-up, not a message from a person. It assigns no work: it claims no task run and renews no lease.'
const TRUNCATED = '\n[truncated]'
/** Milliseconds for a contributor. */
const READ_MS = 2000

/** A prompt with remarks about its creation. */
export interface WakePrompt {
  readonly text: string
  readonly notes: readonly PolicyDiagnostic[]
}

type Kernel = Pick<PluginKernel, 'clock' | 'collect' | 'log'>

/** Contexts provided by this plugin itself. */
export function ownContexts({ healthOf }: Pick<SessionsApi, 'healthOf'>): WakeContext[] {
  return [
    {
      name: 'self',
      read: async ({ agentName, id, workspaceId }) =>
        `you are the agent ${agentName} in session ${id}, workspace ${workspaceId}`,
    },
    {
      name: 'session_health',
      read: async ({ id, updatedAt }) => {
        const health = healthOf(id)
        return health && `the session is ${health.health}, last active ${health.last_activity_at ?? iso(updatedAt)}`
      },
    },
  ]
}

/**
 * The text of a wake-up: an introduction, the summary and guidance of the policy, and its included context, limited to
 * the configured number of bytes. Never rejects: unavailable parts are left out and noted.
 */
export async function wakePrompt(kernel: Kernel, policy: Heartbeat, session: SessionInfo): Promise<WakePrompt> {
  const { summary, guidance_markdown: guidance, max_bytes: max } = policy.prompt
  const notes = [...absentContexts(kernel, policy)]
  const contexts = includedContexts(kernel, policy).map(async ({ owner, entry }) => {
    try {
      const content = (await within(kernel.clock, READ_MS, entry.read(session)))?.trim()
      return content ? [`- ${content.replaceAll('\n', '\n  ')}`] : []
    } catch (error) {
      const message = `${owner} did not provide ${entry.name}: ${messageOf(error)}`
      kernel.log.warn(message, { session: session.id })
      notes.push({ code: 'heartbeat_context_failed', severity: 'warning', field: 'context.include', message })
      return []
    }
  })
  const context = (await Promise.all(contexts)).flat().join('\n')
  const whole = [summary, guidance, context].filter(part => part).join('\n\n')
  const { text, truncated } = cutText(whole, max, TRUNCATED)
  if (truncated || policy.prompt.truncated) {
    const message = `the policy and its context are truncated to ${max} bytes`
    notes.push({ code: 'heartbeat_context_truncated', severity: 'info', message })
  }
  return { text: text === '' ? NOTICE : `${NOTICE}\n\n${text}`, notes }
}

/** Included contexts without a contributor, for example of a plugin that is not loaded. */
export function absentContexts({ collect }: Pick<Kernel, 'collect'>, policy: Heartbeat): PolicyDiagnostic[] {
  const known = new Set(collect(WakeContexts).map(({ entry }) => entry.name))
  return included(policy).flatMap(name => {
    if (known.has(name)) return []
    const message = `no plugin provides ${JSON.stringify(name)}; it is omitted`
    return [{ code: 'heartbeat_context_unavailable', severity: 'info' as const, field: 'context.include', message }]
  })
}

/** The contexts that a policy includes, in its order; the first contributor of a name wins. */
function includedContexts({ collect }: Pick<Kernel, 'collect'>, policy: Heartbeat): Contribution<WakeContext>[] {
  const all = collect(WakeContexts)
  return included(policy).flatMap(name => all.find(({ entry }) => entry.name === name) ?? [])
}

const included = ({ prompt }: Heartbeat) => [...new Set(prompt.context.include ?? [])]
