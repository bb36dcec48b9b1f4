import { type Contribution, iso, messageOf, type PluginKernel, within } from '../../../kernel/plugin.js'
import type { Heartbeat } from '../../../schemas/agents/sidecars.js'
import type { PolicyDiagnostic } from '../../../schemas/sessions.js'
import type { SessionInfo, SessionsApi } from '../../work/sessions/api.js'
import { cutText } from '../sidecars/api.js'
import { type WakeContext, WakeContexts } from './api.js'

const NOTICE =
  'This is a heartbeat: a wake-up by the clock and not a message of a person. It assigns no work: because of it nothing is claimed and no lease is renewed.'
const TRUNCATED = '\n[truncated]'
/** Milliseconds that a contributor has. */
const READ_MS = 2000

/** A prompt, and what whoever decides about wake-ups should know of it. */
export interface WakePrompt {
  readonly text: string
  readonly notes: readonly PolicyDiagnostic[]
}

type Kernel = Pick<PluginKernel, 'clock' | 'collect' | 'log'>

/** What is known of a session without anybody's help. */
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
 * The text of a wake-up: what it is, then the summary and guidance of the policy and the context that it includes, of which
 * there are at most so many bytes as the configuration gives it. Never rejects: what cannot be had is left out and noted.
 */
export async function wakePrompt(kernel: Kernel, policy: Heartbeat, session: SessionInfo): Promise<WakePrompt> {
  const { summary, guidance_markdown: guidance, max_bytes: max } = policy.prompt
  const notes = [...absentContexts(kernel, policy)]
  const contexts = includedContexts(kernel, policy).map(async ({ owner, entry }) => {
    try {
      const told = (await within(kernel.clock, READ_MS, entry.read(session)))?.trim()
      return told ? [`- ${told.replaceAll('\n', '\n  ')}`] : []
    } catch (error) {
      const message = `${owner} did not tell ${entry.name}: ${messageOf(error)}`
      kernel.log.warn(message, { session: session.id })
      notes.push({ code: 'heartbeat_context_failed', severity: 'warning', field: 'context.include', message })
      return []
    }
  })
  const context = (await Promise.all(contexts)).flat().join('\n')
  const whole = [summary, guidance, context].filter(part => part).join('\n\n')
  const { text, truncated } = cutText(whole, max, TRUNCATED)
  if (truncated || policy.prompt.truncated) {
    const message = `what the policy and its context tell is cut to ${max} bytes`
    notes.push({ code: 'heartbeat_context_truncated', severity: 'info', message })
  }
  return { text: text === '' ? NOTICE : `${NOTICE}\n\n${text}`, notes }
}

/** What a policy includes and nobody tells: it may be that of a part of the daemon that is not there. */
export function absentContexts({ collect }: Pick<Kernel, 'collect'>, policy: Heartbeat): PolicyDiagnostic[] {
  const known = new Set(collect(WakeContexts).map(({ entry }) => entry.name))
  return included(policy).flatMap(name => {
    if (known.has(name)) return []
    const message = `nothing here tells ${JSON.stringify(name)}; it is left out`
    return [{ code: 'heartbeat_context_unavailable', severity: 'info' as const, field: 'context.include', message }]
  })
}

/** In the order of the policy; of several contributors of one name the first. */
function includedContexts({ collect }: Pick<Kernel, 'collect'>, policy: Heartbeat): Contribution<WakeContext>[] {
  const all = collect(WakeContexts)
  return included(policy).flatMap(name => all.find(({ entry }) => entry.name === name) ?? [])
}

const included = ({ prompt }: Heartbeat) => [...new Set(prompt.context.include ?? [])]
