import { command } from '../../../kernel/kit/commands/command-line.js'
import { covers } from '../../../kernel/kit/text.js'
import type { AgentDefinition, PermissionMode } from '../../agents/agents/api.js'
import type { SessionInfo } from '../sessions/api.js'
import { type ReasonCode, type ToolDecision, type ToolDescriptor, toolFault } from './api.js'
import type { Entry } from './registry/catalog.js'

/** Rules of an agent's definition and session for tools. */
export interface AgentRules {
  readonly definition: AgentDefinition | undefined
  readonly mode: PermissionMode
  /** Allowed tools with expanded toolsets; undefined: all. */
  readonly allowed: ReadonlySet<string> | undefined
  /** Patterns that a parent limited the session to. */
  readonly rights: readonly string[] | undefined
}

/** The place that is judged. Without an agent it is a person or a person's program, and agent rules do not apply. */
export interface PolicyScope {
  readonly workspaceId?: string
  readonly agentName?: string
  readonly session?: AgentRules & { readonly info: SessionInfo }
  /** Rules of the session, or of an agent named without a session. */
  readonly agent?: AgentRules
}

export interface Rules {
  readonly enabled: boolean
  readonly externalDefault: 'disabled' | 'ask' | 'enabled'
}

/** Verdict of a layer of rules. */
type Verdict = 'allow' | 'ask' | 'deny'

/** Layers in order of evaluation; the first denial decides. */
export const LAYERS = ['registry', 'availability', 'source', 'agent', 'session'] as const
export type Layer = (typeof LAYERS)[number]

export interface Judgement extends ToolDecision {
  readonly layers: Readonly<Record<Layer, Verdict>>
  /** The denying layer. */
  readonly deniedBy?: Layer
  readonly visibleToSession: boolean
  readonly visibleToOperator: boolean
}

interface Said {
  readonly verdict: Verdict
  readonly reasons?: readonly ReasonCode[]
}

const allow: Said = { verdict: 'allow' }
const deny = (...reasons: readonly ReasonCode[]): Said => ({ verdict: 'deny', reasons })
const ask: Said = { verdict: 'ask', reasons: ['approval_required'] }

/** Whether one of the patterns, such as `mcp__github__*`, matches a tool. */
export const names = (patterns: readonly string[], id: string): boolean => patterns.some(pattern => covers(pattern, id))

type Rule = (entry: Entry, scope: PolicyScope, rules: Rules) => Said

const RULES: Readonly<Record<Layer, Rule>> = {
  registry: ({ descriptor }, _, { enabled }) => {
    if (!enabled) return deny('source_disabled')
    return descriptor.visibility === 'internal' ? deny('visibility_denied') : allow
  },
  availability: ({ unavailable = [] }) => (unavailable.length > 0 ? deny(...unavailable) : allow),
  source: ({ descriptor }, { agent }, { externalDefault }) => {
    if (!agent || descriptor.backend.kind === 'native' || externalDefault === 'enabled') return allow
    if (isNamed(descriptor, agent)) return allow
    return externalDefault === 'ask' ? ask : deny('source_disabled')
  },
  agent: ({ descriptor: { id, visibility } }, { agent }) => {
    if (!agent) return allow
    if (visibility === 'operator') return deny('visibility_denied')
    if (agent.allowed && !namedBy(agent.allowed, id)) return deny('policy_denied')
    return names(agent.definition?.denyTools ?? [], id) ? deny('policy_denied') : allow
  },
  session: ({ descriptor }, { agent }) => {
    if (!agent) return allow
    if (agent.rights && !names(agent.rights, descriptor.id)) return deny('session_denied')
    // Running code in the daemon, or changing what may run, needs a person in every mode.
    const needsPerson =
      descriptor.requiresInteraction || (descriptor.backend.kind === 'native' && descriptor.risk === 'destructive')
    switch (agent.mode) {
      case 'approve-all':
        return needsPerson ? ask : allow
      case 'approve-reads':
        return descriptor.risk === 'read' && !needsPerson ? allow : ask
      case 'deny-all':
        return descriptor.risk === 'read' ? ask : deny('session_denied')
    }
  },
}

function namedBy(allowed: ReadonlySet<string>, id: string): boolean {
  return (
    allowed.has(id) ||
    names(
      [...allowed].filter(pattern => pattern.endsWith('*')),
      id,
    )
  )
}

/** Whether the agent's definition names the tool or its server, which expresses the intent to use it. */
function isNamed({ id, backend }: ToolDescriptor, { allowed, definition }: AgentRules): boolean {
  if (allowed && namedBy(allowed, id)) return true
  return (
    backend.mcpServer !== undefined && (definition?.mcpServers ?? []).some(({ name }) => name === backend.mcpServer)
  )
}

/** Judgement of a call by the rules, before its input, remembered decisions and hooks. */
export function judge(entry: Entry, scope: PolicyScope, rules: Rules): Judgement {
  const said = LAYERS.map(layer => [layer, RULES[layer](entry, scope, rules)] as const)
  const denied = said.find(([, { verdict }]) => verdict === 'deny')
  const asks = said.some(([, { verdict }]) => verdict === 'ask')
  const { visibility } = entry.descriptor
  return {
    callable: !denied,
    approvalRequired: !denied && asks,
    reasons: denied ? (denied[1].reasons ?? []) : asks ? ['approval_required'] : [],
    layers: Object.fromEntries(said.map(([layer, { verdict }]) => [layer, verdict])) as Record<Layer, Verdict>,
    ...(denied ? { deniedBy: denied[0] } : {}),
    visibleToSession: visibility === 'session' || visibility === 'model',
    visibleToOperator: visibility !== 'internal',
  }
}

/**
 * Whether an approval is needed for an agent's call that names another workspace. Throws `tool_denied` if the agent's
 * mode, sandbox or parent forbids leaving its own.
 */
export function judgeLeaving(toolId: string, { info, mode }: NonNullable<PolicyScope['session']>): boolean {
  const isHeld = info.confinement?.kind === 'sandbox' || info.lineage !== undefined
  if (isHeld || mode === 'deny-all')
    throw toolFault(
      'tool_denied',
      ['session_denied'],
      `this agent works in the workspace of its session, ${info.workspaceId}`,
      { toolId, next: command('me context') },
    )
  return mode === 'approve-reads'
}

/** Whether a place lists a tool: tools forbidden to an agent are hidden, unavailable ones are shown. */
export function isShown(
  { descriptor: { visibility } }: Entry,
  { agent }: PolicyScope,
  { deniedBy }: Judgement,
): boolean {
  if (visibility === 'internal') return false
  return !agent || (visibility !== 'operator' && deniedBy !== 'agent' && deniedBy !== 'session')
}
