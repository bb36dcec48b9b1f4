import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'

/** A server on standard input and output, over HTTP: the conformance runner speaks nothing else. */
export interface Bridge {
  readonly url: string
  close(): Promise<void>
}

/**
 * Starts the command once for each session and hands messages on as they are, but for the names of tools: those of one server of
 * the daemon have a prefix that the runner does not expect.
 */
export async function bridge(argv: readonly string[], env: Record<string, string>, prefix: string): Promise<Bridge> {
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  const open = async () => {
    const [command = '', ...args] = argv
    const inner = new StdioClientTransport({ command, args, env, stderr: 'ignore' })
    const outer = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: id => void sessions.set(id, outer),
    })
    outer.onmessage = message => void inner.send(called(message, prefix)).catch(() => {})
    inner.onmessage = message => void outer.send(listed(message, prefix)).catch(() => {})
    outer.onclose = () => void inner.close()
    await inner.start()
    await outer.start()
    return outer
  }
  const server = createServer(async (request, response) => {
    const id = request.headers['mcp-session-id']
    const session = typeof id === 'string' ? sessions.get(id) : undefined
    await (session ?? (await open())).handleRequest(request, response)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    close: async () => {
      await Promise.all([...sessions.values()].map(session => session.close()))
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

/** A call by the name that the runner knows. */
function called(message: JSONRPCMessage, prefix: string): JSONRPCMessage {
  if (!('method' in message) || message.method !== 'tools/call') return message
  const params = { ...message.params, name: `${prefix}${message.params?.name}` }
  return { ...message, params }
}

/** A list with the names that the runner knows. */
function listed(message: JSONRPCMessage, prefix: string): JSONRPCMessage {
  if (!('result' in message) || !Array.isArray(message.result.tools)) return message
  const tools = (message.result.tools as { name: string }[]).map(tool => ({
    ...tool,
    name: tool.name.startsWith(prefix) ? tool.name.slice(prefix.length) : tool.name,
  }))
  return { ...message, result: { ...message.result, tools } }
}
