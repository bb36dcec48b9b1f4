// A child of the daemon that floods: `node child.mjs extension|agent|mcp|hook <folder> <name>`, `node child.mjs web <folder> <name>`
// for an MCP server over HTTP, which prints its port, or `node child.mjs burn -` as a baseline.
// It speaks its protocol until `<folder>/<name>.go` exists, which says `<stream> <shape>`, and floods that stream from then on.
import { randomFillSync } from 'node:crypto'
import { existsSync, readFileSync, writeSync } from 'node:fs'
import { createServer } from 'node:http'
import path from 'node:path'
import { createInterface } from 'node:readline'

const [role, folder, name] = process.argv.slice(2)
const KIB64 = 65_536
const repeat = line => Buffer.from(line.repeat(Math.ceil(KIB64 / line.length)))
const update = sessionId => ({
  method: 'session/update',
  params: { sessionId, update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'x' } } },
})
const toLine = message => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`

const shapes = {
  'short lines': () => repeat('err line\n'),
  'one endless line': () => Buffer.alloc(KIB64, 'x'),
  binary: () => randomFillSync(Buffer.alloc(KIB64)),
  'empty lines': () => Buffer.alloc(KIB64, '\n'),
  messages: () => repeat(toLine(role === 'agent' ? update('s') : { method: 'hello' })),
}

/** Never returns: writes as fast as the pipe takes it. */
function flood(stream, shape) {
  const block = shapes[shape]()
  const file = stream === 'stderr' ? 2 : 1
  for (let at = 0; ; ) {
    try {
      at += writeSync(file, block, at)
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
    }
    if (at >= block.length) at = 0
  }
}

if (role === 'burn') flood('stdout', 'short lines')

const go = path.join(folder, `${name}.go`)
setInterval(() => {
  if (!existsSync(go)) return
  const [stream, ...shape] = readFileSync(go, 'utf8').split(' ')
  if (role !== 'web') flood(stream, shape.join(' '))
  for (const listener of listeners.splice(0)) pour(listener, shapes[shape.join(' ')]())
}, 20)

/** Replies whose streams of events flood. */
const listeners = []

/** Writes as fast as the other side reads, as long as it does. */
function pour(response, block) {
  if (response.destroyed) return
  while (response.write(block));
  response.once('drain', () => pour(response, block))
}

const extension = {
  initialize: ({ protocol_version, extension: { name, version }, capabilities }) => ({
    protocol_version,
    extension_info: { name, version },
    accepted_capabilities: { provides: capabilities.provides, permissions: capabilities.granted_permissions },
    implemented_methods: ['health_check', 'shutdown', 'provide_tools', 'tools/call'],
    supports: { health_check: true },
  }),
  health_check: () => ({ healthy: true }),
  shutdown: () => ({ acknowledged: true }),
}
const agent = {
  initialize: () => ({ protocolVersion: 1, agentCapabilities: {} }),
  'session/new': () => ({ sessionId: 's' }),
}
const mcp = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'flood', version: '1' },
  }),
  'tools/list': () => ({ tools: [{ name: 'more', inputSchema: { type: 'object' } }] }),
}
const methods = { agent, extension, mcp, web: mcp, hook: {} }[role]

if (role === 'web') {
  createServer(async (request, response) => {
    if (request.method === 'GET') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      return listeners.push(response)
    }
    let text = ''
    for await (const chunk of request) text += chunk
    const { id, method, params } = JSON.parse(text || '{}')
    if (id === undefined) return response.writeHead(202).end()
    const result = methods[method]?.(params) ?? {}
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  }).listen(0, '127.0.0.1', function () {
    console.log(this.address().port)
  })
} else {
  createInterface({ input: process.stdin }).on('line', line => {
    const { id, method, params } = JSON.parse(line)
    // A prompt stays without an answer: its turn goes on while the process floods.
    if (id === undefined || method === 'session/prompt') return
    const result = methods[method]?.(params) ?? {}
    process.stdout.write(toLine({ id, result }))
  })
  // A hook is given one line and the end of its input.
  if (role !== 'hook') process.stdin.on('end', () => process.exit(0))
}
