import { createHash } from 'node:crypto'
import { canonicalJson } from '../../../kernel/kit/canonical.js'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { clip } from '../../../kernel/kit/text.js'
import { type Clock, Fault, within } from '../../../kernel/plugin.js'
import type { AgentsApi } from '../../agents/agents/api.js'
import type { Workspace, WorkspacesApi } from '../../desk/workspaces/api.js'
import {
  type OfferedTool,
  type ReasonCode,
  type ToolBackend,
  type ToolContent,
  type ToolDescriptor,
  type ToolPlace,
  toolFault,
} from '../tools/api.js'
import { type Connection, SessionRefused } from './client/connection.js'
import { idPart, type McpTool } from './client/tools.js'
import type { Server } from './sources/declaration.js'
import type { Sources } from './sources/sources.js'

/** Milliseconds that a listing waits for servers without a known list of tools. */
const WAIT_MS = 800
/** Milliseconds that a search waits for such servers, because it would miss their tools. */
const COMPLETE_MS = 8000

interface BackendWorld {
  readonly clock: Clock
  readonly agents: AgentsApi
  readonly workspaces: WorkspacesApi
  readonly sources: Sources
  /** The connection of a server for a caller. */
  connection(server: Server, scope: ToolPlace, workspace: Workspace | undefined): Connection
  /** Trace context of a call; undefined without a trace. */
  traceparent(scope: ToolPlace): string | undefined
}

/** The tools of MCP servers. A list is rebuilt when a server, its tools or its state change. */
export class McpTools implements ToolBackend {
  readonly kind = 'mcp'
  readonly #lists = new Map<string, { readonly state: readonly unknown[]; readonly tools: readonly OfferedTool[] }>()

  constructor(private readonly world: BackendWorld) {}

  async tools(scope: ToolPlace): Promise<readonly OfferedTool[]> {
    const connections = await this.#connections(scope)
    const unknown = connections.filter(one => one.isUnknown)
    for (const one of connections) void one.refresh().catch(() => {})
    const listing = Promise.allSettled(unknown.map(one => one.tools()))
    if (unknown.length > 0) await within(this.world.clock, WAIT_MS, listing).catch(() => {})
    const state = connections.flatMap(one => [one, one.known, one.failure])
    const at = JSON.stringify([scope.workspaceId, scope.agentName, connections.some(one => one.confined)])
    const before = this.#lists.get(at)
    const isAsBefore = before?.state.length === state.length && state.every((part, n) => part === before.state[n])
    if (before && isAsBefore) return before.tools
    const tools = connections.flatMap(connection => this.#offered(connection))
    this.#lists.set(at, { state, tools })
    return tools
  }

  /** Restarts a tool's server if it ended; after a failure only once its pause is over. */
  async revive({ backend: { mcpServer } }: ToolDescriptor, scope: ToolPlace): Promise<void> {
    const connection = (await this.#connections(scope)).find(({ server }) => server.name === mcpServer)
    await connection?.tools().catch(() => {})
  }

  async complete(scope: ToolPlace): Promise<readonly string[]> {
    const isSilent = (one: Connection) => one.isUnknown
    const silent = (await this.#connections(scope)).filter(isSilent)
    if (silent.length === 0) return []
    await within(this.world.clock, COMPLETE_MS, Promise.allSettled(silent.map(one => one.tools()))).catch(() => {})
    return silent.filter(isSilent).map(({ server }) => server.name)
  }

  async missing(id: string, scope: ToolPlace): Promise<Fault | undefined> {
    const isOf = ({ server }: Connection) => id.startsWith(`mcp__${idPart(server.name)}__`)
    const connection = (await this.#connections(scope)).find(isOf)
    if (!connection) return undefined
    const listing = connection.tools().catch(() => {})
    if (connection.isUnknown) await within(this.world.clock, COMPLETE_MS, listing).catch(() => {})
    const { failure, server, isUnknown } = connection
    if (!failure && !isUnknown) return undefined
    const why = failure?.why ?? 'it has not listed its tools yet'
    return toolFault('tool_unavailable', [failure?.reason ?? 'mcp_unreachable'], `MCP server ${server.name}: ${why}`, {
      toolId: clip(id, 256),
      next: command('mcp show', server.name, '--probe'),
    })
  }

  async call(tool: ToolDescriptor, input: Readonly<Record<string, unknown>>, by: ToolPlace & { signal: AbortSignal }) {
    const { mcpServer = '', mcpTool = '' } = tool.backend
    const connection = (await this.#connections(by)).find(({ server }) => server.name === mcpServer)
    if (!connection)
      throw toolFault('tool_unavailable', ['dependency_missing'], `there is no MCP server ${mcpServer} here`)
    const ask = async () => {
      const listed = (await connection.tools()).tools.find(({ id }) => id === tool.id)
      // The digest differs: the server changed the tool after it was approved.
      if (!listed || this.#describe(connection.server, listed).digest !== tool.digest)
        throw toolFault('tool_unavailable', ['runtime_descriptor_mismatch'], `${tool.id} was changed by its server`)
      return connection.call(mcpTool, input, by.signal, this.world.traceparent(by))
    }
    try {
      // A restarted server does not know its old sessions. A refused call was not executed, so one repetition is safe.
      const { content, structuredContent, isError } = await ask().catch(error => {
        if (error instanceof SessionRefused) return ask()
        throw error
      })
      return {
        content: content as readonly ToolContent[],
        ...(structuredContent !== undefined && { structured: structuredContent }),
        isError,
      }
    } catch (error) {
      if (error instanceof SessionRefused)
        throw toolFault('tool_backend_failed', [], `${mcpServer} ${mcpTool}: ${error.message}`, { cause: error })
      if (!(error instanceof Fault) || !error.code.startsWith('mcp_')) throw error
      const { code, message, next } = error
      if (code === 'mcp_call_failed') throw toolFault('tool_backend_failed', [], message, { cause: error })
      throw toolFault('tool_unavailable', [code as ReasonCode], message, {
        cause: error,
        toolId: tool.id,
        ...(next !== undefined && { next }),
      })
    }
  }

  #offered(connection: Connection): OfferedTool[] {
    const { server, known, failure } = connection
    const usable = (known?.tools ?? []).map(tool => ({
      descriptor: this.#describe(server, tool),
      ...(failure && { unavailable: [failure.reason], why: `MCP server ${server.name}: ${failure.why}` }),
    }))
    // Two tools with the same id are both listed: the catalog then marks both as not callable.
    const withheld = (known?.withheld ?? []).map(({ tool, tooLong }) => ({
      descriptor: this.#describe(server, tool),
      ...(tooLong && {
        unavailable: ['id_too_long'] as const,
        why: `its name on the MCP server is ${clip(tool.name, 80)}`,
      }),
    }))
    return [...usable, ...withheld]
  }

  #describe(server: Server, tool: McpTool): ToolDescriptor {
    return {
      id: tool.id,
      title: tool.title,
      description: tool.description,
      inputSchema: tool.inputSchema,
      // A server can only raise the risk of its tools: a claim that one merely reads cannot be verified.
      risk: tool.isDestructive ? 'destructive' : 'open_world',
      visibility: 'model',
      backend: { kind: 'mcp', mcpServer: server.name, mcpTool: tool.name },
      digest: createHash('sha256')
        .update(canonicalJson([server.key, tool.digest]))
        .digest('hex'),
      owner: server.name,
    }
  }

  async #connections(scope: ToolPlace): Promise<Connection[]> {
    const { workspaceId, agentName } = scope
    const { workspaces, agents, sources } = this.world
    const workspace: Workspace | undefined = workspaceId === undefined ? undefined : workspaces.get(workspaceId)
    // Planned like a session: a definition that may not run, or that refers to foreign secrets, adds no servers.
    const plan = agentName === undefined ? undefined : await agents.plan(agentName, workspace).catch(() => undefined)
    const { servers } = await sources.read({ workspace, definition: plan?.definition })
    return servers.map(server => this.world.connection(server, scope, workspace))
  }
}
