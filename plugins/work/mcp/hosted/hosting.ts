import path from 'node:path'
import type { Actor } from '../../../../kernel/plugin.js'
import type { OpenMcpConnectionBody } from '../../../../schemas/mcp/connections.js'
import { AGENT_SESSION } from '../../../access/identity/api.js'
import type { SessionInfo, SessionStart } from '../../sessions/api.js'
import type { ToolPlace } from '../../tools/api.js'
import { McpErrors } from '../errors.js'
import type { K } from '../needs.js'
import { Hosting as HostingSetting } from '../settings.js'
import { Channel, type HostedConnection } from './channel.js'
import { Nonces } from './nonces.js'
import { agentServer, operatorServer, withTools } from './servers.js'

const MOST_CONNECTIONS = 256
const MOST_OF_ONE = 16
/** Name of the daemon's server for agents. */
const NAME = 'svc'
const PROGRAM = 'svc-mcp'
/** The discovery request of clients of the second protocol version. */
const DISCOVER = 'server/discover'

/** The daemon as an MCP server for agents of sessions and for the operator's clients. */
export class Hosting {
  readonly #nonces: Nonces
  readonly #connections = new Map<string, HostedConnection>()
  #core: Promise<typeof import('@modelcontextprotocol/core')> | undefined

  constructor(private readonly kernel: K) {
    this.#nonces = new Nonces(kernel.clock, kernel.ids)
  }

  /** Adds a server to a session's start that leads back to the daemon through the session's socket. */
  prepare(start: SessionStart, session: SessionInfo): SessionStart | undefined {
    const bin = this.kernel.env.SVC_BIN_DIR
    const { SVC_SOCKET: socket } = start.env
    const granted = session.lineage?.permission_policy?.mcp_servers
    const isAllowed = granted === undefined || granted.includes(NAME)
    const isTaken = start.mcpServers.some(server => Object(server).name === NAME)
    if (!bin || !socket || !isAllowed || isTaken || !this.kernel.needs.tools.current) return undefined
    if (!this.kernel.config.get(HostingSetting)) return undefined
    // The program uses no TLS, and Node 20 parses all of these certificates before it runs anything.
    const env = { SVC_SOCKET: socket, SVC_MCP_NONCE: this.#nonces.issue(session.id), NODE_EXTRA_CA_CERTS: '' }
    const pairs = Object.entries(env).map(([name, value]) => ({ name, value }))
    const proxy = { name: NAME, command: path.join(bin, PROGRAM), args: [], env: pairs }
    return { ...start, mcpServers: [...start.mcpServers, proxy] }
  }

  /** The agent of a session runs. */
  started({ id }: SessionInfo): void {
    this.#nonces.started(id)
  }

  /** Closes the connections of a stopped session and invalidates its nonce. */
  async stopped({ id }: SessionInfo): Promise<void> {
    this.#nonces.forget(id)
    for (const connection of [...this.#connections.values()])
      if (connection.sessionId === id) await this.#close(connection)
  }

  /** @throws Fault `mcp_nonce_invalid`, `mcp_connections_full`, `mcp_tools_unavailable` */
  async open(actor: Actor, body: OpenMcpConnectionBody): Promise<string> {
    const { ids, needs } = this.kernel
    const tools = needs.tools.current
    if (!tools) throw McpErrors.mcp_tools_unavailable()
    const session = this.#sessionOf(actor, body.nonce)
    const own = [...this.#connections.values()].filter(({ actorId }) => actorId === actor.id)
    if (session ? own.length >= MOST_OF_ONE : this.#connections.size >= MOST_CONNECTIONS) {
      const idle = own.find(({ channel }) => channel.open === 0)
      if (!idle) throw McpErrors.mcp_connections_full()
      await this.#close(idle)
    }
    const hosted = { tools, scope: await this.#placeOf(session, body), actor, version: this.kernel.version }
    const made = session ? await agentServer(hosted) : await operatorServer(hosted, body.risks ?? ['read'])
    const channel = new Channel()
    const { serveStdio } = await import('@modelcontextprotocol/server/stdio')
    // The first message decides the protocol version.
    // Subscriptions are off: each message is answered by its own response, so changes could not be delivered.
    const server = serveStdio(() => made.server, { transport: channel, maxSubscriptions: 0 })
    const id = `mcp_${ids.hex(24)}`
    const isOnTrial = session !== undefined
    this.#connections.set(id, { id, actorId: actor.id, sessionId: session?.id, isOnTrial, made, server, channel })
    return id
  }

  /**
   * Passes on one message; resolves with the answer, if any. @throws Fault `mcp_connection_not_found`,
   * `mcp_message_invalid`
   */
  async take(actor: Actor, id: string, message: unknown, signal: AbortSignal): Promise<object | undefined> {
    // Importing it anew for each message would copy all of its exports.
    this.#core ??= import('@modelcontextprotocol/core')
    const { JSONRPCMessageSchema } = await this.#core
    const parsed = JSONRPCMessageSchema.safeParse(message)
    if (!parsed.success) throw McpErrors.mcp_message_invalid()
    const connection = this.#find(actor, id)
    if (connection.isOnTrial && !('method' in parsed.data && parsed.data.method === DISCOVER))
      await this.#spend(connection)
    const answer = await connection.channel.take(parsed.data, signal)
    const isList = 'method' in parsed.data && parsed.data.method === 'tools/list'
    return isList && answer ? withTools(answer, connection.made) : answer
  }

  async close(actor: Actor, id: string): Promise<void> {
    await this.#close(this.#find(actor, id))
  }

  async closeAll(): Promise<void> {
    for (const connection of [...this.#connections.values()]) await this.#close(connection)
  }

  /**
   * Spends the nonce of a connection. Some clients discover the protocol version with a separate process and start
   * another one with the same nonce, so only the first connection that sends another request is kept as the agent's.
   */
  async #spend(spending: HostedConnection): Promise<void> {
    spending.isOnTrial = false
    this.#nonces.forget(spending.actorId)
    for (const other of [...this.#connections.values()])
      if (other.isOnTrial && other.actorId === spending.actorId) await this.#close(other)
  }

  #find(actor: Actor, id: string): HostedConnection {
    const connection = this.#connections.get(id)
    if (connection?.actorId === actor.id) return connection
    throw McpErrors.mcp_connection_not_found()
  }

  async #close({ id, server }: HostedConnection): Promise<void> {
    this.#connections.delete(id)
    await server.close()
  }

  /** The session of an agent with a valid nonce; undefined for all other actors. */
  #sessionOf(actor: Actor, nonce = ''): SessionInfo | undefined {
    if (actor.origin !== AGENT_SESSION) return undefined
    const session = this.kernel.needs.sessions.get(actor.id)
    if (session && this.#nonces.admits(actor.id, nonce)) return session
    throw McpErrors.mcp_nonce_invalid()
  }

  async #placeOf(session: SessionInfo | undefined, { workspace_id: id }: OpenMcpConnectionBody): Promise<ToolPlace> {
    if (session) return { workspaceId: session.workspaceId, sessionId: session.id, agentName: session.agentName }
    return id === undefined ? {} : { workspaceId: (await this.kernel.needs.workspaces.find(id)).id }
  }
}
