// A client of the MCP SDK with connections to several servers.
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { answer } from './child.js'
import { median } from './measure.js'

const clients = new Map<string, Client>()

function of(name: string): Client {
  const client = clients.get(name)
  if (!client) throw new Error(`there is no connection ${name}`)
  return client
}

async function timesOf(count: number, work: () => Promise<unknown>): Promise<number> {
  const times: number[] = []
  for (let i = 0; i < count; i++) {
    const began = performance.now()
    await work()
    times.push(performance.now() - began)
  }
  return median(times)
}

const handlers = {
  async connect(name: string, command: string, args: readonly string[], env: Readonly<Record<string, string>>) {
    const client = new Client({ name: 'bench', version: '1.0.0' })
    await client.connect(new StdioClientTransport({ command, args: [...args], env: { ...env } }))
    clients.set(name, client)
  },
  /** All that a server serves, for one that serves the same. */
  async look(name: string, tool: string) {
    const { tools } = await of(name).listTools()
    const { content, isError } = await of(name).callTool({ name: tool, arguments: {} })
    const [first] = content as { text?: string }[]
    if (isError || first?.text === undefined) throw new Error(`${tool}: ${JSON.stringify(content)}`)
    return { tools, text: first.text }
  },
  /** Milliseconds of a `tools/list`, the median of so many. */
  list: (name: string, count: number) => timesOf(count, () => of(name).listTools()),
  /** Milliseconds of a call, the median of so many. */
  call: (name: string, tool: string, count: number) =>
    timesOf(count, async () => {
      const { isError, content } = await of(name).callTool({ name: tool, arguments: {} })
      if (isError) throw new Error(`${tool}: ${JSON.stringify(content)}`)
    }),
  async close() {
    for (const client of clients.values()) await client.close()
  },
}
export type McpClient = typeof handlers
answer(handlers)
