import { command as commandLine } from '../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../kernel/kit/text.js'
import { type Actor, messageOf } from '../../../kernel/plugin.js'
import type { StatusMcpServer } from '../../../schemas/daemon/status.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import type {
  ListMcpServersReply,
  McpAuthStatus,
  McpPlaceQuery,
  McpServerView,
  McpTargetQuery,
  PutMcpServerBody,
  ShowMcpServerQuery,
} from '../../../schemas/settings/mcp-servers.js'
import type { ApplyOutcome } from '../../../schemas/settings.js'
import type { AgentDefinition } from '../../agents/agents/api.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import type { AcpMcpServer, SessionInfo, SessionMcpServer } from '../sessions/api.js'
import type { ToolPlace } from '../tools/api.js'
import type { CatalogOrigin, McpApi } from './api.js'
import { confinedFor, confinedKey } from './client/confining.js'
import type { Connection } from './client/connection.js'
import { Manager } from './client/manager.js'
import { reach } from './client/reach.js'
import { McpErrors } from './errors.js'
import { serversForSession } from './handing.js'
import { Hosting } from './hosted/hosting.js'
import type { K } from './needs.js'
import type { FailedRevocation } from './oauth/farewells.js'
import { bindingOf, revokedStatus } from './oauth/login-status.js'
import { Logins } from './oauth/logins.js'
import { revocationItems } from './oauth/revocation-items.js'
import { tokenFetch } from './oauth/token-fetch.js'
import { collisions, isFolder, type PlaceTrouble, programTrouble, serverItems } from './servers/checks.js'
import { Leaving } from './servers/leaving.js'
import { references } from './servers/own-secrets.js'
import { type Tried, tryAll } from './servers/trying.js'
import { Vanishing } from './servers/vanishing.js'
import { viewOf } from './servers/views.js'
import { Writing } from './servers/writing.js'
import type { Server } from './sources/declaration.js'
import { isOfWorkspace, problemTexts, Sources } from './sources/sources.js'
import { McpTools } from './tool-backend.js'

/** Milliseconds for trying servers in a report: less than the time limit of a probe. */
const TRYING_MS = 140_000
/** Workspaces whose files one report reads. */
const MOST_PLACES = 500

/** MCP servers with their states and tools. */
export class McpService implements McpApi {
  readonly sources: Sources
  readonly manager: Manager
  readonly tools: McpTools
  readonly hosting: Hosting
  readonly logins: Logins
  readonly #leaving: Leaving
  readonly #vanishing: Vanishing
  readonly #writing: Writing

  constructor(private readonly kernel: K) {
    this.sources = new Sources(kernel, declared => this.#vanishing.noticed(declared))
    this.logins = new Logins(
      kernel,
      server => this.manager.retry(server),
      server => this.#vanishing.remember([server]),
    )
    this.#vanishing = new Vanishing(kernel, this.sources, this.logins)
    this.manager = new Manager(kernel, (server, confined) =>
      reach(kernel, server, confined, tokenFetch(this.logins, server)),
    )
    const { agents, workspaces } = kernel.needs
    this.tools = new McpTools({
      ...{ clock: kernel.clock, agents, workspaces, sources: this.sources },
      connection: (server, scope, workspace) => this.#connection(server, scope, workspace),
      traceparent: ({ sessionId }) => {
        const telemetry = kernel.needs.telemetry.current
        return sessionId === undefined ? telemetry?.traceparent() : telemetry?.traceparentOfTurn(sessionId)
      },
    })
    this.hosting = new Hosting(kernel)
    const declared = (id: string | undefined) =>
      this.sources.read({ workspace: id === undefined ? undefined : workspaces.get(id) })
    this.#leaving = new Leaving(kernel.db, this.logins, this.#vanishing, declared)
    this.#writing = new Writing(kernel, this.sources, this.manager, this.#leaving)
  }

  start(): void {
    this.kernel.scope.defer('MCP servers', () => this.manager.close())
    this.kernel.scope.defer('MCP clients', () => this.hosting.closeAll())
  }

  /** Finishes removals of an earlier daemon, then tracks new ones. */
  async forget(signal: AbortSignal): Promise<void> {
    await this.#leaving.resume(signal)
    await Promise.all([this.logins.farewells.run(signal), this.#vanishing.run(signal)])
  }

  /** Removes the logins to servers of a purged extension. */
  forgetExtension(name: string): Promise<void> {
    return this.#vanishing.forgetExtension(name)
  }

  /** Logs out, and retries failed revocations. @throws Fault `mcp_server_not_found`, `mcp_auth_revocation_failed` */
  async logout(name: string, query: McpPlaceQuery, actor: Actor): Promise<McpAuthStatus> {
    const workspace = await this.#workspace(query)
    const isMeant = this.#isFailedOf(name, workspace)
    const server = await this.find(name, workspace).catch(error => {
      // A failed revocation can be retried even if the server is gone.
      if (!this.logins.farewells.failed().some(isMeant)) throw error
    })
    if (server && this.logins.has(bindingOf(server))) await this.logins.logout(server, actor)
    else {
      await this.logins.revokeAgain(isMeant, actor)
      if (server) await this.logins.logout(server, actor)
    }
    return server ? this.logins.status(server) : revokedStatus(name, workspace?.id)
  }

  /** The doctor's items for removed logins that are not revoked. */
  revocationItems(): DiagnosticItem[] {
    return revocationItems(this.logins.farewells.failed(), id => this.kernel.needs.workspaces.get(id) !== undefined)
  }

  /** The doctor's items for unreadable files and failing servers, of the home and of each workspace. */
  async serverItems(): Promise<DiagnosticItem[]> {
    const { workspaces } = this.kernel.needs
    const places = [undefined, ...workspaces.list().slice(0, MOST_PLACES)].map(
      async (workspace): Promise<PlaceTrouble | undefined> => {
        // A missing workspace folder has an item of its own.
        if (workspace && !(await isFolder(workspace.rootDir))) return undefined
        const { servers, problems } = await this.sources.read({ workspace })
        const own = servers.filter(({ source }) => source.workspaceId === workspace?.id)
        const root = workspace?.rootDir ?? this.kernel.home.root
        const programless: { name: string; why: string }[] = []
        for (const server of own) {
          if (this.manager.known(server)?.failure) continue
          const why = await programTrouble(server, this.kernel.env, root)
          if (why !== undefined) programless.push({ name: server.name, why })
        }
        return {
          programless,
          ...(workspace && { workspaceId: workspace.id }),
          problems: problems.filter(({ where }) => isOfWorkspace(where) === (workspace !== undefined)),
          collisions: collisions(own),
          failed: own.flatMap(server => {
            const { failure } = this.manager.known(server) ?? {}
            return failure ? [{ name: server.name, why: failure.why }] : []
          }),
        }
      },
    )
    return serverItems((await Promise.all(places)).filter(trouble => trouble !== undefined))
  }

  /** As {@link serverItems}, after trying every server that a session could use. */
  async probeItems(signal: AbortSignal): Promise<DiagnosticItem[]> {
    const { agents, workspaces } = this.kernel.needs
    const tried = new Map<string, Tried>()
    for (const workspace of [undefined, ...workspaces.list().slice(0, MOST_PLACES)]) {
      if (workspace && !(await isFolder(workspace.rootDir))) continue
      for (const definition of [undefined, ...(await agents.list(workspace))]) {
        const { servers } = await this.sources.read({ workspace, definition })
        for (const server of servers) {
          const connection = this.#connection(server, {}, workspace)
          // A server of the home is the same in every workspace.
          const key = confinedKey(server.key, connection.confined)
          if (!tried.has(key)) tried.set(key, { server, connection, workspaceId: server.source.workspaceId })
        }
      }
    }
    const budget = new AbortController()
    const timer = this.kernel.clock.timeout(TRYING_MS, () => budget.abort(), { unref: true })
    const failed = await tryAll([...tried.values()], AbortSignal.any([signal, budget.signal]))
    timer.cancel()
    const items = await this.serverItems()
    // Servers of the home and workspaces already have items; those of agents and skills belong to no place.
    const known = new Set(items.map(({ id }) => id))
    return [...items, ...failed.filter(({ id }) => !known.has(id))]
  }

  /** Revocations of a removed workspace are addressed without a workspace. */
  #isFailedOf(name: string, workspace: Workspace | undefined) {
    const { workspaces } = this.kernel.needs
    return ({ server, workspaceId: id }: FailedRevocation) =>
      server === name && (id === undefined || !workspaces.get(id) ? workspace === undefined : id === workspace?.id)
  }

  async sessionStopped(session: SessionInfo): Promise<void> {
    await this.hosting.stopped(session)
    await this.manager.leave(session.id)
  }

  /** The servers that the process of a session starts or connects to itself. */
  handed(
    definition: AgentDefinition,
    workspace: Workspace,
    allowed: readonly string[] | undefined,
    start: Parameters<SessionMcpServer['read']>[3],
  ): Promise<AcpMcpServer[]> {
    const begin = async (server: Server) => {
      await this.#connection(server, { sessionId: start.sessionId }, workspace).tools()
    }
    return serversForSession(this.kernel, { sources: this.sources, begin, start }, definition, workspace, allowed)
  }

  async list(query: McpPlaceQuery): Promise<ListMcpServersReply> {
    const workspace = await this.#workspace(query)
    const found = await this.sources.read({ workspace })
    const problems = [
      ...problemTexts(found),
      ...this.#missing(found.servers),
      ...collisions(found.servers).map(({ why }) => why),
    ]
    return {
      collection: 'mcp-servers',
      scope: workspace ? 'workspace' : 'global',
      available_scopes: ['global', 'workspace'],
      ...(workspace && { workspace_id: workspace.id }),
      mcp_servers: found.servers.map(server => this.#view(server)),
      ...(problems.length > 0 && { problems }),
    }
  }

  /** Variables of servers in a workspace's files that have no value in the vault. */
  #missing(servers: readonly Server[]): string[] {
    const vault = this.kernel.needs.vault.current
    const foreign = servers.filter(({ source }) => source.kind.startsWith('workspace-'))
    if (!vault || foreign.length === 0) return []
    const stored = new Set(vault.list('mcp/ws/').map(({ ref }) => ref))
    return foreign.flatMap(({ name, declaration }) =>
      references(declaration)
        .filter(reference => !stored.has(reference))
        .map(
          reference =>
            `the MCP server ${shown(name)} needs a secret that the vault does not have: ${commandLine('vault put', reference)}`,
        ),
    )
  }

  /** @throws Fault `mcp_server_not_found`; a server that does not answer is shown with its state */
  async show(name: string, query: ShowMcpServerQuery): Promise<McpServerView> {
    const server = await this.find(name, await this.#workspace(query))
    if (query.probe) {
      const connection = this.#connection(server, {}, await this.#workspace(query))
      await connection.probe().catch(error => this.kernel.log.debug(messageOf(error)))
    }
    const { tools = [], refused = [] } = this.manager.known(server)?.known ?? {}
    return {
      ...this.#view(server),
      tools: tools.map(({ id, title, description }) => ({ id, title, description })),
      ...(refused.length > 0 && { refused_tools: [...refused] }),
    }
  }

  /** @throws Fault `mcp_server_not_found`, `mcp_scope_invalid` */
  async findAt(name: string, query: McpPlaceQuery): Promise<Server> {
    return this.find(name, await this.#workspace(query))
  }

  async put(name: string, query: McpTargetQuery, body: PutMcpServerBody, actor: Actor): Promise<ApplyOutcome> {
    return this.#writing.put(name, query, await this.#workspace(query), body, actor)
  }

  async shown(name: string, target: McpPlaceQuery): Promise<McpServerView | undefined> {
    const { servers } = await this.sources.read({ workspace: await this.#workspace(target) })
    const server = servers.find(one => one.name === name)
    return server && this.#view(server)
  }

  async declare(
    body: PutMcpServerBody,
    target: McpPlaceQuery,
    origin: CatalogOrigin,
    actor: Actor,
  ): Promise<ApplyOutcome> {
    const workspace = await this.#workspace(target)
    return this.#writing.put(body.server.name, {}, workspace, body, actor, origin)
  }

  async remove(name: string, query: McpTargetQuery, actor: Actor): Promise<ApplyOutcome> {
    return this.#writing.remove(name, query, await this.#workspace(query), actor)
  }

  /** @throws Fault `mcp_server_not_found` */
  async find(name: string, workspace: Workspace | undefined): Promise<Server> {
    const found = await this.sources.read({ workspace })
    const server = found.servers.find(one => one.name === name)
    if (server) return server
    const where = workspace ? `in workspace ${workspace.name}` : 'for every workspace'
    const problems = problemTexts(found)
    const problem = problems.find(text => text.includes(`server ${shown(name)} `)) ?? problems[0]
    throw McpErrors.mcp_server_not_found(
      `there is no MCP server ${shown(name)} ${where}${problem === undefined ? '' : `; ${problem}`}`,
    )
  }

  /** The servers for all workspaces, for the daemon's status. */
  async status(): Promise<StatusMcpServer[]> {
    const { servers } = await this.sources.read({})
    return servers.map(server => {
      const { runtime_status: runtime, auth_status: auth, transport } = this.#view(server)
      const { state = 'idle', ...rest } = runtime ?? { configured: true, initialized: false, tool_count: 0 }
      return {
        name: server.name,
        scope: server.source.scope,
        transport,
        ...rest,
        state,
        runtime_status: state,
        ...(auth && { auth_status: auth.status }),
      }
    })
  }

  /** The connection for a caller, with the sandbox that the caller requires. */
  #connection(server: Server, scope: ToolPlace, workspace: Workspace | undefined): Connection {
    return this.manager.of(server, confinedFor(this.kernel.needs, server, scope, workspace), scope.sessionId)
  }

  #view(server: Server): McpServerView {
    return viewOf(server, this.manager.known(server), server.declaration.auth ? this.logins.status(server) : undefined)
  }

  /** @throws Fault `mcp_scope_invalid`, `workspace_not_found` */
  async #workspace({ scope, workspace_id: id }: McpPlaceQuery): Promise<Workspace | undefined> {
    const isOfWorkspace = scope === 'workspace' || (scope === undefined && id !== undefined)
    if (isOfWorkspace !== (id !== undefined))
      throw McpErrors.mcp_scope_invalid(
        isOfWorkspace ? 'scope workspace needs workspace_id' : 'workspace_id belongs to scope workspace',
      )
    return id === undefined ? undefined : this.kernel.needs.workspaces.find(id)
  }
}
