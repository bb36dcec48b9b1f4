import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type AgentWorld, openAgent } from '../../fixtures/agent-world.js'
import type { Reply } from '../../harness/kernel.js'

const NOTEBOOK = path.join(fileURLToPath(new URL('../../..', import.meta.url)), 'test/real/mcp-server.mjs')
let world: AgentWorld
test.after.each(() => world.close())

/** A server of MCP over HTTP that answers each request with one message. */
async function overHttp(tools: readonly object[], call: (params: Reply) => object) {
  const seen: string[] = []
  const server = createServer(async (request, reply) => {
    if (request.method !== 'POST') return reply.writeHead(405).end()
    seen.push(String(request.headers.authorization))
    let text = ''
    for await (const part of request) text += part
    const { id, method, params } = JSON.parse(text)
    if (id === undefined) return reply.writeHead(202).end()
    const result =
      method === 'initialize'
        ? {
            protocolVersion: params.protocolVersion,
            capabilities: { tools: {} },
            serverInfo: { name: 'web', version: '1' },
          }
        : method === 'tools/list'
          ? { tools }
          : call(params)
    reply.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, seen, server }
}

test('tools of a stdio server are offered, and used after a question', async () => {
  const stdio = (file: string) => ({ name: 'note book', command: process.execPath, args: [NOTEBOOK, file], env: [] })
  const folder = await mkdtemp(path.join(tmpdir(), 'svc-mcp-'))
  const file = path.join(folder, 'note.txt')
  world = await openAgent({}, { session: { mcpServers: [stdio(file)] } })
  world.model.script([{ calls: [{ name: 'mcp__note_book__note_it', input: { text: 'remember' } }] }, { text: 'ok' }])
  await world.prompt('note it')
  assert.ok(world.model.asked[0]?.tools.includes('mcp__note_book__note_it'))
  assert.is(world.model.results().at(-1), 'noted')
  assert.is(readFileSync(file, 'utf8'), 'remember')
  assert.is(world.questions[0].toolCall.title, 'note book: note_it')
  await world.request('session/set_mode', { sessionId: world.opened.sessionId, modeId: 'plan' })
  world.model.script([{ calls: [{ name: 'mcp__note_book__note_it', input: { text: 'again' } }] }, { text: 'ok' }])
  await world.prompt('note it')
  assert.match(world.model.results().at(-1) ?? '', 'this is plan mode')
  await rm(folder, { recursive: true })
})

test('tools of an HTTP server are used with its headers; their failures are reported', async () => {
  const tool = { name: 'look_up', description: 'x'.repeat(5000), inputSchema: { type: 'object' } }
  const { url, seen, server } = await overHttp(
    [tool, { ...tool, name: 'huge', inputSchema: { type: 'object', description: 'y'.repeat(50_000) } }],
    ({ arguments: { fail } }) => ({
      content: [
        { type: 'text', text: fail ? 'it is broken' : 'found '.repeat(50_000) },
        { type: 'image', data: '', mimeType: 'image/png' },
      ],
      isError: fail,
    }),
  )
  const headers = [{ name: 'authorization', value: 'Bearer of-the-server' }]
  world = await openAgent({}, { session: { mcpServers: [{ type: 'http', name: 'web', url, headers }] } })
  world.model.script([
    { calls: [{ name: 'mcp__web__look_up', input: {} }] },
    { calls: [{ name: 'mcp__web__look_up', input: { fail: true } }] },
    { text: 'ok' },
  ])
  await world.prompt('look it up')
  server.close()
  server.closeAllConnections()
  const [long, broken] = world.model.results()
  assert.ok((long ?? '').startsWith('found found') && (long ?? '').length < 60_000)
  assert.match(broken ?? '', 'it is broken')
  assert.is(world.call().status, 'failed')
  assert.equal([...new Set(seen)], ['Bearer of-the-server'])
  assert.not.ok(world.model.asked[0]?.tools.includes('mcp__web__huge'))
})

/** A server of the older transport: answers come on one stream of events, requests by POST. */
async function overSse(tools: readonly object[], keepsStream = true) {
  const seen: string[] = []
  let stream: ServerResponse | undefined
  const server = createServer(async (request, reply) => {
    seen.push(`${request.method} ${request.headers.authorization}`)
    if (request.method === 'GET') {
      stream = reply.writeHead(200, { 'content-type': 'text/event-stream' })
      stream.write('event: endpoint\ndata: /messages?session=1\n\n')
      return
    }
    let text = ''
    for await (const part of request) text += part
    reply.writeHead(202).end()
    const { id, method, params } = JSON.parse(text)
    if (id === undefined) return
    if (method === 'tools/call' && !keepsStream) return void stream?.destroy()
    const about = { capabilities: { tools: {} }, serverInfo: { name: 'old', version: '1' } }
    const result =
      method === 'initialize'
        ? { protocolVersion: params.protocolVersion, ...about }
        : method === 'tools/list'
          ? { tools }
          : { content: [{ type: 'text', text: `looked up ${params.arguments.word}` }] }
    stream?.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/sse`, seen, server }
}

test('tools of an SSE server are used with its headers', async () => {
  const { url, seen, server } = await overSse([{ name: 'look_up', inputSchema: { type: 'object' } }])
  const headers = [{ name: 'authorization', value: 'Bearer of-the-server' }]
  world = await openAgent({}, { session: { mcpServers: [{ type: 'sse', name: 'old', url, headers }] } })
  world.model.script([{ calls: [{ name: 'mcp__old__look_up', input: { word: 'svc' } }] }, { text: 'ok' }])
  await world.prompt('look it up')
  server.close()
  server.closeAllConnections()
  assert.is(world.model.results().at(-1), 'looked up svc')
  assert.equal([...new Set(seen)], ['GET Bearer of-the-server', 'POST Bearer of-the-server'])
})

test('a call of an SSE server with a broken stream can be canceled', async () => {
  const { url, server } = await overSse([{ name: 'look_up', inputSchema: { type: 'object' } }], false)
  world = await openAgent({}, { session: { mcpServers: [{ type: 'sse', name: 'old', url, headers: [] }] } })
  world.model.script([{ calls: [{ name: 'mcp__old__look_up', input: { word: 'svc' } }] }, { text: 'ok' }])
  const turn = world.prompt('look it up')
  for (const end = Date.now() + 60_000; world.questions.length === 0; await sleep(20)) assert.ok(Date.now() < end)
  await sleep(200)
  await world.cancel()
  assert.equal(await turn, { stopReason: 'cancelled' })
  server.close()
  server.closeAllConnections()
})

test('a server that cannot start or has ended does not stop the session', async () => {
  const servers = [
    { name: 'none', command: '/nowhere/at/all', args: [], env: [] },
    { name: 'ends', command: '/bin/false', args: [], env: [] },
    { type: 'http', name: 'gone', url: 'http://127.0.0.1:29997/mcp', headers: [] },
    { type: 'sse', name: 'old', url: 'http://127.0.0.1:29997/sse', headers: [] },
  ]
  world = await openAgent({}, { session: { mcpServers: servers } })
  assert.equal(await world.prompt('hi'), { stopReason: 'end_turn' })
  const system = String(world.model.asked[0]?.messages[0]?.content)
  for (const { name } of servers) assert.match(system, `the MCP server ${name} (`)
})

test.run()
