// An MCP server with one tool, `note_it`, that writes its text to the file named as argument: a real agent calls it.
// On stdio, or with --http after the file on a port of 127.0.0.1, whose URL it prints.
import { writeFileSync } from 'node:fs'
import http from 'node:http'
import { createInterface } from 'node:readline'

const [file, transport] = process.argv.slice(2)
const tool = {
  name: 'note_it',
  description: 'Writes a note.',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
}

function answer({ method, params }) {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'notebook', version: '1.0.0' },
      }
    case 'tools/list':
      return { tools: [tool] }
    case 'tools/call':
      writeFileSync(file, params.arguments.text)
      return { content: [{ type: 'text', text: 'noted' }] }
    case 'ping':
      return {}
    default:
      return undefined
  }
}

/** The answer to a message; undefined for a notification. */
function reply(line) {
  const message = JSON.parse(line)
  if (message.id === undefined) return undefined
  const result = answer(message)
  const error = { code: -32601, message: `Method not found: ${message.method}` }
  return JSON.stringify({ jsonrpc: '2.0', id: message.id, ...(result ? { result } : { error }) })
}

async function serve(request, response) {
  if (request.method !== 'POST') return response.writeHead(405).end()
  let text = ''
  for await (const chunk of request) text += chunk
  const told = reply(text)
  if (told === undefined) return response.writeHead(202).end()
  return response.writeHead(200, { 'content-type': 'application/json' }).end(told)
}

if (transport === '--http') {
  const server = http.createServer(serve)
  server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/mcp`))
} else {
  createInterface({ input: process.stdin }).on('line', line => {
    const told = reply(line)
    if (told !== undefined) process.stdout.write(`${told}\n`)
  })
}
