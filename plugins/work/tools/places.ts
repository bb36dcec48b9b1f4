import { command } from '../../../kernel/kit/commands/command-line.js'
import { clip, shown } from '../../../kernel/kit/text.js'
import { type Actor, KernelErrors } from '../../../kernel/plugin.js'
import { agentSessionOf } from '../../access/identity/api.js'
import type { AgentDefinition, PermissionMode } from '../../agents/agents/api.js'
import type { SessionInfo } from '../sessions/api.js'
import { type ToolPlace, toolFault } from './api.js'
import type { K } from './needs.js'
import type { Place } from './policy.js'

/** How a request names a place. */
export interface AskedPlace {
  readonly workspace_id?: string | undefined
  readonly workspace?: string | undefined
  readonly session_id?: string | undefined
  readonly agent_name?: string | undefined
}

/** Milliseconds for which the definition of an agent is not read again. */
const KEPT_MS = 1000

/** Who asks, and what the rules have to know of them. */
export class Places {
  readonly #definitions = new Map<
    string,
    { readonly until: number; readonly definition: Promise<AgentDefinition | undefined> }
  >()

  constructor(private readonly kernel: K) {}

  /**
   * What a request is about. An agent is in its own session, whatever it says. Throws `tool_denied` for a session that is not its own, or
   * that is not of the agent or workspace named with it; 404 for what there is not.
   */
  async asked({ workspace, workspace_id, session_id, agent_name }: AskedPlace, actor: Actor): Promise<ToolPlace> {
    const own = agentSessionOf(actor)
    if (own !== undefined && session_id !== undefined && session_id !== own)
      throw toolFault('tool_denied', ['session_denied'], 'an agent calls tools for its own session only')
    const sessionId = own ?? session_id
    const reference = workspace_id ?? workspace
    const found = reference === undefined ? undefined : this.kernel.needs.workspaces.find(reference)
    // To an agent a workspace that there is not is none that it is in, like any other.
    const workspaceId = (await (own === undefined ? found : found?.catch(() => ({ id: '' }))))?.id
    if (sessionId === undefined) {
      // An agent that is not there is an error, not one that may do everything.
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

  /** What the rules are asked about; `expand` gives the tools of toolsets. */
  async judged(place: ToolPlace, expand: (ids: readonly string[]) => readonly string[]): Promise<Place> {
    const { workspaceId, agentName, sessionId } = place
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
      // An agent whose definition cannot be read any more is allowed nothing by it.
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

  /** The definition as it is now: what it allows or denies counts for running sessions as well. */
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

  /** The mode in which a session of an agent without one of its own would begin. */
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
