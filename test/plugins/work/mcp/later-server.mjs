/**
 * A server of the second line of the protocol alone, over standard input or with `http`: it refuses the handshake of the first one.
 * Its tool `grow` gives it one tool more. Over HTTP it prints its address, and each method that it is asked for.
 */
import http from 'node:http'
import { createMcpHandler, Server } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'

const tools = [
  { name: 'echo', inputSchema: { type: 'object' } },
  { name: 'grow', inputSchema: { type: 'object' } },
]
let changed = () => {}

function make() {
  const server = new Server({ name: 'later', version: '1' }, { capabilities: { tools: { listChanged: true } } })
  server.setRequestHandler('tools/list', async () => ({ tools }))
  server.setRequestHandler('tools/call', async ({ params: { name, arguments: input } }) => {
    if (name === 'grow') {
      tools.push({ name: `grown${tools.length}`, inputSchema: { type: 'object' } })
      changed(server)
    }
    return { content: [{ type: 'text', text: `${name} ${JSON.stringify(input)}` }] }
  })
  return server
}

if (process.argv[2] === 'http') {
  const { toNodeHandler } = await import('@modelcontextprotocol/node')
  const handler = createMcpHandler(make, { legacy: 'reject' })
  changed = () => handler.notify.toolsChanged()
  const answer = toNodeHandler(handler)
  const server = http.createServer((request, response) => {
    console.log(request.headers['mcp-method'] ?? 'none')
    return answer(request, response)
  })
  server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`))
} else {
  changed = server => server.sendToolListChanged()
  serveStdio(make, { legacy: 'reject' })
}
