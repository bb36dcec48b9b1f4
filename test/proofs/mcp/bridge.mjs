// A server on standard input and output, over HTTP: `node bridge.mjs <prefix> <command> [args…]` prints its URL. The conformance
// runner speaks nothing else. The command is started once for each session, and messages are handed on as they are, but for the
// names of tools: those of one server of the daemon have a prefix that the runner does not expect.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'

const [prefix, command, ...args] = process.argv.slice(2)
const sessions = new Map()

async function open() {
  const inner = new StdioClientTransport({ command, args, env: { ...process.env }, stderr: 'ignore' })
  const outer = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: id => void sessions.set(id, outer),
  })
  outer.onmessage = message => void inner.send(called(message)).catch(() => {})
  inner.onmessage = message => void outer.send(listed(message)).catch(() => {})
  outer.onclose = () => void inner.close()
  await inner.start()
  await outer.start()
  return outer
}

/** A call by the name that the daemon knows. */
function called(message) {
  if (message.method !== 'tools/call') return message
  return { ...message, params: { ...message.params, name: `${prefix}${message.params.name}` } }
}

/** A list with the names that the runner knows. */
function listed(message) {
  if (!Array.isArray(message.result?.tools)) return message
  const tools = message.result.tools.map(tool =>
    tool.name.startsWith(prefix) ? { ...tool, name: tool.name.slice(prefix.length) } : tool,
  )
  return { ...message, result: { ...message.result, tools } }
}

const server = createServer(async (request, response) => {
  const session = sessions.get(request.headers['mcp-session-id'])
  await (session ?? (await open())).handleRequest(request, response)
})
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/mcp`))
