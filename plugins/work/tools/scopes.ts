import { command } from '../../../kernel/kit/commands/command-line.js'
import { clip, shown } from '../../../kernel/kit/text.js'
import { type Actor, KernelErrors } from '../../../kernel/plugin.js'
import { agentSessionOf } from '../../access/identity/api.js'
import type { AgentDefinition, PermissionMode } from '../../agents/agents/api.js'
import type { SessionInfo } from '../sessions/api.js'
import { type ToolPlace, toolFault } from './api.js'
import type { K } from './needs.js'
import type { PolicyScope } from './policy.js'

/** Reference to a place in a request. */
export interface ScopeRequest {
  readonly workspace_id?: string | undefined
  readonly workspace?: string | undefined
  readonly session_id?: string | undefined
  readonly agent_name?: string | undefined
}

/** Milliseconds for which an agent's definition is cached. */
const KEPT_MS = 1000

/** Resolves the place of a request, with everything that the rules need to know about it. */
export class Scopes {
  readonly #definitions = new Map<
    string,
    { readonly until: number; readonly definition: Promise<AgentDefinition | undefined> }
  >()

  constructor(private readonly kernel: K) {}

  /**
   * The place that a request means. An agent is always in its own session. Throws `tool_denied` for a foreign session,
   * or one that does not match the given agent or workspace; 404 for missing ones.
   */
  async resolve({ workspace, workspace_id, session_id, agent_name }: ScopeRequest, actor: Actor): Promise<ToolPlace> {
    const own = agentSessionOf(actor)
    if (own !== undefined && session_id !== undefined && session_id !== own)
      throw toolFault('tool_denied', ['session_denied'], 'an agent calls tools for its own session only')
    const sessionId = own ?? session_id
    const reference = workspace_id ?? workspace
    const found = reference === undefined ? undefined : this.kernel.needs.workspaces.find(reference)
    // For an agent, an unknown workspace is reported like one it is not in.
    const workspaceId = (await (own === undefined ? found : found?.catch(() => ({ id: '' }))))?.id
    if (sessionId === undefined) {
      // An unknown agent is an error; without one, no agent rules would apply.
      if (agent_name) await this.kernel.needs.agents.find(agent_name, this.#workspace(workspaceId))
      return { ...(workspaceId === undefined ? {} : { workspaceId }), ...(agent_name ? { agentName: agent_name } : {}) }
    }
    const session = this.#session(sessionId)
    if (workspaceId !== undefined && workspaceId !== session.workspaceId)
      throw toolFault(
        'tool_denied',
        ['session_denied'],
        `session ${session.id} is not in workspace ${shown(reference ?? '')}`,
      )
    if (agent_name !== undefined && agent_name !== session.agentName)
      throw toolFault('tool_denied', ['session_denied'], `the agent of session ${session.id} is ${session.agentName}`)
    return { workspaceId: session.workspaceId, sessionId: session.id, agentName: session.agentName }
  }

  /** The workspace, agent and definition by which a call is judged. `expand` returns the tools of toolsets. */
  async judged(scope: ToolPlace, expand: (ids: readonly string[]) => readonly string[]): Promise<PolicyScope> {
    const { workspaceId, agentName, sessionId } = scope
    const info = sessionId === undefined ? undefined : this.#session(sessionId)
    const where = info?.workspaceId ?? workspaceId
    const name = info?.agentName ?? agentName
    const about = { ...(where === undefined ? {} : { workspaceId: where }), ...(name ? { agentName: name } : {}) }
    if (!name) return about
    const definition = await this.#definition(name, where)
    const { tools = [], toolsets = [] } = definition ?? {}
    const isLimited = tools.length + toolsets.length > 0
    const agent = {
      definition,
      mode: info?.permissions ?? definition?.permissions ?? (await this.#defaultMode(name, where)),
      // An agent with an unreadable definition is allowed nothing by it.
      allowed:
        definition === undefined ? new Set<string>() : isLimited ? new Set([...tools, ...expand(toolsets)]) : undefined,
      rights: info?.lineage?.permission_policy?.tools,
    }
    return info ? { ...about, agent, session: { ...agent, info } } : { ...about, agent }
  }

  #session(id: string): SessionInfo {
    const session = this.kernel.needs.sessions.get(id)
    if (!session) throw KernelErrors.record_not_found(`no session ${clip(id, 100)}`, { next: command('session list') })
    return session
  }

  /** The current definition: its rules apply to running sessions as well. */
  #definition(agentName: string, workspaceId: string | undefined): Promise<AgentDefinition | undefined> {
    const key = `${workspaceId ?? ''}\n${agentName}`
    const now = this.kernel.clock.monotonic()
    const known = this.#definitions.get(key)
    if (known && known.until > now) return known.definition
    const definition = this.kernel.needs.agents.find(agentName, this.#workspace(workspaceId)).catch(() => undefined)
    if (this.#definitions.size > 1000) this.#definitions.clear()
    this.#definitions.set(key, { until: now + KEPT_MS, definition })
    return definition
  }

  /** Permission mode of a new session of an agent without an explicit one. */
  #defaultMode(agentName: string, workspaceId: string | undefined): Promise<PermissionMode> {
    return this.kernel.needs.agents.plan(agentName, this.#workspace(workspaceId)).then(
      ({ permissions }) => permissions,
      () => 'approve-reads',
    )
  }

  #workspace(id: string | undefined) {
    return id === undefined ? undefined : this.kernel.needs.workspaces.get(id)
  }
}
