// An MCP server over HTTP that floods: `node flooding-server.mjs <where> <shape>`; prints its port once it listens.
// <where> `reply`: in the replies to calls of its tool `more`; `standing`: in the stream that a client opens to listen.
// `GET /seen` answers what clients did: `{"streams":1,"lists":1,"calls":0,"answering":0}`, the last one answers that are under way.
import { createServer } from 'node:http'

const [where, shape] = process.argv.slice(2)
const KIB64 = 65_536
const toEvent = message => `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`
const log = toEvent({ method: 'notifications/message', params: { level: 'info', data: 'x' } })
const seen = { streams: 0, lists: 0, calls: 0, answering: 0 }

/** What comes again and again, without an end. */
const SHAPES = {
  events: log,
  'answers that nobody asked for': toEvent({ id: 'nobody', result: {} }),
  'lists that changed': toEvent({ method: 'notifications/tools/list_changed' }),
  'one endless line': 'x'.repeat(KIB64),
  'one endless event': `data: ${'x'.repeat(KIB64)}\n`,
  comments: ': still here\n',
  'empty lines': '\n',
}

/** Writes as fast as somebody reads. */
function flood(response, text) {
  const piece = text.repeat(Math.ceil(KIB64 / text.length))
  const more = () => {
    while (!response.destroyed && response.write(piece));
    if (!response.destroyed) response.once('drain', more)
  }
  more()
}

/** A stream of events that floods as the shape says. */
function stream(response) {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  if (shape === 'events now and then') return setInterval(() => response.write(log), 20)
  if (shape === 'streams that end at once') return response.end('retry: 0\nid: 1\ndata:\n\n')
  if (shape !== 'questions') return flood(response, SHAPES[shape])
  let id = 0
  return setInterval(() => response.write(toEvent({ id: ++id, method: 'ping' }).repeat(20)), 5)
}

const results = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: { listChanged: true } },
    serverInfo: { name: 'flooding', version: '1' },
  }),
  'tools/list': () => {
    seen.lists++
    return { tools: [{ name: 'more', description: 'says more', inputSchema: { type: 'object' } }] }
  },
}

createServer(async (request, response) => {
  if (request.url === '/seen') return response.end(JSON.stringify(seen))
  if (request.method === 'GET') {
    seen.streams++
    if (where === 'standing' || shape === 'streams that end at once') return stream(response)
  }
  if (request.method !== 'POST') return response.writeHead(405).end()
  let text = ''
  for await (const chunk of request) text += chunk
  const { id, method, params } = JSON.parse(text)
  // It takes no answers: each stays under way.
  if (method === undefined) return seen.answering++
  if (id === undefined) return response.writeHead(202).end()
  const result = results[method]?.(params)
  if (method === 'tools/call') seen.calls++
  if (!result && where === 'reply') {
    if (shape !== 'one endless body') return stream(response)
    response.writeHead(200, { 'content-type': 'application/json' })
    return flood(response, ' ')
  }
  response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 'one' })
  response.end(JSON.stringify({ jsonrpc: '2.0', id, result: result ?? { content: [{ type: 'text', text: 'here' }] } }))
}).listen(0, '127.0.0.1', function () {
  console.log(this.address().port)
})
