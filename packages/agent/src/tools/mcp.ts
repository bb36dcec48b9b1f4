import type { McpServer } from '@agentclientprotocol/sdk/unstable'
import type { Client, ClientOptions } from '@modelcontextprotocol/client'
import { clip, headAndTail, reasonOf, shortened } from '../text.js'
import { Refused } from '../workspace/paths.js'
import type { Tool } from './tool.js'

const CONNECT_MS = 20_000
const CALL_MS = 120_000
const MAX_SERVERS = 16
const MAX_TOOLS_EACH = 64
const MAX_TOOLS = 128
const MAX_PAGES = 10
const MAX_SCHEMA = 20_000
const MAX_DESCRIPTION = 1000

/** The MCP servers of one session. They connect while the session opens; the first turn waits for them. */
export class McpServers {
  readonly #clients: Client[] = []
  readonly #opened: Promise<{ readonly tools: readonly Tool[]; readonly missing: readonly string[] }>
  #isClosed = false

  constructor(
    servers: readonly McpServer[],
    private readonly cwd: string,
  ) {
    this.#opened = this.#open(servers)
  }

  /** Tools of the connected servers, and a note for each server that failed. Never rejects. */
  opened() {
    return this.#opened
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.allSettled(this.#clients.map(client => client.close()))
  }

  async #open(servers: readonly McpServer[]) {
    const results = await Promise.all(
      servers.slice(0, MAX_SERVERS).map(async server => {
        try {
          return { tools: await this.#connect(server), missing: [] }
        } catch (error) {
          return { tools: [], missing: [`the MCP server ${shortened(server.name, 64)} (${reasonOf(error)})`] }
        }
      }),
    )
    const many =
      servers.length > MAX_SERVERS ? [`${servers.length - MAX_SERVERS} MCP servers beyond ${MAX_SERVERS}`] : []
    const tools = new Map(results.flatMap(result => result.tools.map(tool => [tool.name, tool] as const)))
    return {
      tools: [...tools.values()].slice(0, MAX_TOOLS),
      missing: [...results.flatMap(({ missing }) => missing), ...many],
    }
  }

  async #connect(server: McpServer): Promise<Tool[]> {
    return this.#connectBy(server, {}).catch(error => {
      if (!isOfLaterLine(error)) throw error
      return this.#connectBy(server, { versionNegotiation: { mode: { pin: LATER_LINE } } })
    })
  }

  async #connectBy(server: McpServer, options: ClientOptions): Promise<Tool[]> {
    // Loaded on demand: most sessions have no server.
    const { Client } = await import('@modelcontextprotocol/client')
    const client = new Client({ name: 'svc-agent', version: '1.0.0' }, options)
    const limit = { timeout: CONNECT_MS }
    try {
      await client.connect(await this.#transport(server), limit)
      this.#clients.push(client)
      if (this.#isClosed) throw new Error('the session was closed')
      const tools: Tool[] = []
      let cursor: string | undefined
      for (let page = 0; page < MAX_PAGES && tools.length < MAX_TOOLS_EACH; page++) {
        const params = cursor === undefined ? {} : { cursor }
        const list = await client.request({ method: 'tools/list', params }, limit)
        for (const tool of list.tools) {
          if (JSON.stringify(tool.inputSchema).length <= MAX_SCHEMA) tools.push(toolOf(server.name, client, tool))
        }
        cursor = list.nextCursor
        if (cursor === undefined) break
      }
      return tools.slice(0, MAX_TOOLS_EACH)
    } catch (error) {
      await client.close().catch(() => {})
      throw error
    }
  }

  async #transport(server: McpServer) {
    if ('type' in server) {
      if (server.type === 'acp') throw new Error('its type is acp; only stdio, http and sse are supported')
      const headers = Object.fromEntries(server.headers.map(({ name, value }) => [name, value]))
      const options = { requestInit: { headers } }
      if (server.type === 'sse') {
        const { SSEClientTransport } = await import('@modelcontextprotocol/client')
        return new SSEClientTransport(new URL(server.url), options)
      }
      const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client')
      return new StreamableHTTPClientTransport(new URL(server.url), options)
    }
    const { getDefaultEnvironment, StdioClientTransport } = await import('@modelcontextprotocol/client/stdio')
    return new StdioClientTransport({
      command: server.command,
      args: [...server.args],
      // Not the environment of this process, which contains the endpoint's key.
      env: { ...getDefaultEnvironment(), ...Object.fromEntries(server.env.map(({ name, value }) => [name, value])) },
      cwd: this.cwd,
      stderr: 'ignore',
    })
  }
}

/** The protocol revision without a handshake. A server that supports only this revision refuses the handshake with this code. */
const LATER_LINE = '2026-07-28'
const REFUSAL = -32022

function isOfLaterLine(error: unknown): boolean {
  const { code, data } = Object(error) as { code?: unknown; data?: { text?: unknown } }
  return code === REFUSAL || String(data?.text).includes(`"code":${REFUSAL}`)
}

type ListedTool = Awaited<ReturnType<Client['listTools']>>['tools'][number]

function toolOf(server: string, client: Client, { name, description = '', inputSchema }: ListedTool): Tool {
  const own = (text: string) => text.replace(/[^\w-]/g, '_')
  return {
    name: clip(`mcp__${clip(own(server), 20)}__${own(name)}`, 64),
    description: shortened(description, MAX_DESCRIPTION) || name,
    kind: 'other',
    parameters: inputSchema,
    title: () => `${shortened(server, 64)}: ${shortened(name, 64)}`,
    async run(input, { allowed, signal, maxOutput }) {
      // A server's own hints, such as read-only, are not trusted: every call needs approval.
      await allowed(`mcp ${server} ${name}`)
      const options = { signal, timeout: CALL_MS }
      const result = await client.callTool({ name, arguments: { ...input } }, options).catch(error => {
        signal.throwIfAborted()
        throw new Refused(`${server} failed: ${reasonOf(error)}`)
      })
      const parts = Array.isArray(result.content) ? (result.content as readonly { type: string; text?: unknown }[]) : []
      const said = parts.map(part => (part.type === 'text' ? String(part.text) : `[${part.type}]`)).join('\n')
      return { text: headAndTail(said, maxOutput) || '[nothing]', failed: result.isError === true }
    },
  }
}
