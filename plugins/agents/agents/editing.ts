import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import type {
  Agent,
  AgentInput,
  CreateAgentBody,
  DeleteAgentReply,
  DuplicateAgentBody,
  PutAgentBody,
} from '../../../schemas/agents.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import { AgentErrors } from './api.js'
import type { FolderIndex } from './definition/folder-index.js'
import type { AgentSources } from './definition/sources.js'
import { DefinitionWriter, type Kept } from './definition/writer.js'
import { invalid, notFound } from './faults.js'
import type { K } from './needs.js'
import type { AgentsService } from './service.js'
import { agentToInput } from './wire.js'

/** Changes of definition files in the home or a workspace by requests. */
export class AgentEditing {
  readonly #writer: DefinitionWriter

  constructor(
    private readonly kernel: K,
    private readonly sources: AgentSources,
    private readonly agents: Pick<AgentsService, 'find' | 'first' | 'wire' | 'workspace' | 'deleting'>,
  ) {
    this.#writer = new DefinitionWriter(() => kernel.ids.hex(6))
  }

  async create({ agent, scope, workspace: reference }: CreateAgentBody): Promise<Agent> {
    const index = await this.#target(scope, reference)
    return this.#keepingTrust(index, () => this.#create(index, agent))
  }

  /** Keeps the trust of a workspace across the operator's own change. */
  #keepingTrust<T>({ where }: FolderIndex, work: () => Promise<T>): Promise<T> {
    const workspace = this.kernel.needs.workspaces.get(where.workspaceId ?? '')
    const trust = this.kernel.needs.trust.current
    return workspace && trust ? trust.keeping(workspace, work) : work()
  }

  async update(name: string, { agent, expected_digest, workspace }: PutAgentBody): Promise<Agent> {
    if (agent.name !== name) {
      throw AgentErrors.agent_invalid(`agent.name is ${JSON.stringify(agent.name)}, but the path names ${name}`, {
        next: command('agent duplicate', name, placeholder('new-name')),
      })
    }
    const { found, index } = await this.#writable(name, await this.agents.workspace(workspace))
    if (!found.ok) throw invalid(found)
    await this.#keepingTrust(index, () => this.#writer.replace(index.where, agent, expected_digest))
    return this.#written(index, name)
  }

  async remove(name: string, workspace: Workspace | undefined): Promise<DeleteAgentReply> {
    const { found, index } = await this.#writable(name, workspace)
    if (found.ok) await this.kernel.db.tx(t => this.agents.deleting.check(t, found.definition))
    await this.#keepingTrust(index, () => this.#writer.remove(index.where, name))
    await index.read(name)
    const now = (await this.agents.first(name, workspace))?.found
    const { origin } = index.where
    return { name, origin, ...(now?.ok ? { unshadowed_origin: now.definition.origin } : {}) }
  }

  /** The copy is created beside the original unless a scope is given. */
  async duplicate(name: string, body: DuplicateAgentBody): Promise<Agent> {
    const workspace = await this.agents.workspace(body.workspace)
    const definition = await this.agents.find(name, workspace)
    const index = await this.#target(body.scope ?? definition.origin, workspace?.id)
    const { mcpServers, hooks } = definition
    const kept: Kept = {
      ...(mcpServers.length > 0 ? { mcp_servers: [...mcpServers] } : {}),
      ...(hooks.length > 0 ? { hooks: [...hooks] } : {}),
    }
    const { prompt = definition.prompt, ...overrides } = body.overrides ?? {}
    const input = { ...agentToInput(definition), ...overrides, prompt, name: body.name }
    return this.#keepingTrust(index, () => this.#create(index, input, kept))
  }

  async #create(index: FolderIndex, agent: AgentInput, kept?: Kept): Promise<Agent> {
    await this.#writer.create(index.where, agent, kept)
    return this.#written(index, agent.name)
  }

  async #written(index: FolderIndex, name: string): Promise<Agent> {
    const found = await index.read(name)
    if (found?.ok) return this.agents.wire(found.definition)
    throw found ? invalid(found) : notFound(name, undefined)
  }

  async #target(scope: 'workspace' | 'global', reference: string | undefined): Promise<FolderIndex> {
    if (scope === 'global') return this.sources.target(undefined)
    if (!reference) throw AgentErrors.agent_workspace_missing()
    return this.sources.target(await this.agents.workspace(reference))
  }

  /** The effective file of that name. Throws `agent_not_found` (404), `agent_read_only` (409). */
  async #writable(name: string, workspace: Workspace | undefined) {
    const first = await this.agents.first(name, workspace)
    if (!first) throw notFound(name, workspace)
    const { found, where } = first
    if (where?.writable) {
      const index = this.sources.target(where.source === 'home' ? undefined : workspace)
      return { found, index }
    }
    const from = where ? `lies in ${where.folder}` : 'is built in or comes from a package'
    throw AgentErrors.agent_read_only(`agent ${name} ${from}; it cannot be changed here`, {
      next: command('agent duplicate', name, placeholder('new-name')),
    })
  }
}
