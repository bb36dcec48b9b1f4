// A server over HTTP with sessions in its memory, built on the official SDK.
// node http-server.mjs <port> [tool=description ...] [--refuses-with=400]; prints its port once it listens.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'

const [port, ...rest] = process.argv.slice(2)
const status = rest.includes('--refuses-with=400') ? 400 : 404
const tools = rest.filter(one => !one.startsWith('--')).map(one => one.split('='))
const sessions = new Map()
let calls = 0

async function open() {
  const server = new Server({ name: 'restarts', version: '1' }, { capabilities: { tools: {} } })
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: tools.map(([name, description = '']) => ({ name, description, inputSchema: { type: 'object' } })),
  }))
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
    calls++
    if (params.name === 'hangs') return new Promise(() => {})
    return { content: [{ type: 'text', text: `${params.name} ${process.pid} ${calls}` }] }
  })
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: id => sessions.set(id, transport),
  })
  await server.connect(transport)
  return transport
}

const http = createServer(async (request, response) => {
  const id = request.headers['mcp-session-id']
  const transport = id === undefined ? await open() : sessions.get(id)
  if (transport) return transport.handleRequest(request, response)
  const message = status === 400 ? 'Bad Request: No valid session ID provided' : 'Not Found'
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ jsonrpc: '2.0', error: { code: -32000, message }, id: null }))
})
http.listen(Number(port), '127.0.0.1', () => console.log(http.address().port))
