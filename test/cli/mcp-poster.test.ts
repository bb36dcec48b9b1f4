import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Poster } from '../../cli/mcp/poster.js'
import { temporaryFolder } from '../harness/kernel.js'

/** A server on a socket that says what a test has it say, connection by connection. */
interface World {
  readonly poster: Poster
  readonly server: Server
  readonly connections: Socket[]
  /** What is said to each request, in parts. */
  say: (request: string, socket: Socket) => void
}

const test = suite<World>('requests of the MCP relay')
test.before.each(async context => {
  const file = path.join(await temporaryFolder('poster'), 's.sock')
  const connections: Socket[] = []
  const server = createServer(socket => {
    connections.push(socket)
    let text = ''
    socket.on('error', () => {})
    socket.on('data', chunk => {
      text += chunk
      const [, length = ''] = /content-length: (\d+)/.exec(text) ?? []
      const end = text.indexOf('\r\n\r\n') + 4
      if (Buffer.byteLength(text.slice(end)) < Number(length)) return
      context.say(text, socket)
      text = ''
    })
  })
  server.listen(file)
  await once(server, 'listening')
  Object.assign(context, { poster: new Poster(file), server, connections })
})
test.after.each(({ server, connections }) => {
  for (const socket of connections) socket.destroy()
  server.close()
})

const post = async (poster: Poster, body: string) => {
  const reply = await poster.post('/x', body)
  return { status: reply.status, text: reply.body.toString() }
}
const ok = (text: string, more = '') =>
  `HTTP/1.1 200 OK\r\nContent-Length: ${Buffer.byteLength(text)}\r\n${more}\r\n${text}`

test('one connection carries sequential requests, and concurrent requests open more', async context => {
  context.say = (request, socket) => void socket.write(ok(request.slice(request.indexOf('\r\n\r\n') + 4)))
  const { poster, connections } = context
  for (const body of ['{"n":1}', '{"n":"ä"}']) assert.equal(await post(poster, body), { status: 200, text: body })
  assert.is(connections.length, 1)
  const bodies = ['a', 'b', 'c']
  const replies = await Promise.all(bodies.map(body => post(poster, body)))
  assert.equal(
    replies.map(({ text }) => text),
    bodies,
  )
  assert.is(connections.length, 3)
})

test('an answer in chunks of any size, an empty answer and an answer ended by the connection are read', async context => {
  const { poster, connections } = context
  context.say = async (_, socket) => {
    for (const byte of Buffer.from(ok('{"long":"ö"}'))) {
      socket.write(Buffer.from([byte]))
      await new Promise(setImmediate)
    }
  }
  assert.is((await post(poster, '{}')).text, '{"long":"ö"}')
  context.say = (_, socket) => void socket.write('HTTP/1.1 204 No Content\r\nx: y\r\n\r\n')
  assert.equal(await post(poster, '{}'), { status: 204, text: '' })
  context.say = (_, socket) => void socket.end('HTTP/1.1 503 Away\r\nConnection: close\r\n\r\nnot now')
  assert.equal(await post(poster, '{}'), { status: 503, text: 'not now' })
  context.say = (_, socket) => void socket.write(ok('again', 'Connection: close\r\n'))
  const before = connections.length
  for (let n = 0; n < 2; n++) assert.is((await post(poster, '{}')).text, 'again')
  assert.is(connections.length, before + 2, 'who says close is not asked again')
})

test('an invalid answer fails, and the next request uses a new connection', async context => {
  const { poster } = context
  for (const [text, why] of [
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n', /not a reply of the daemon/],
    ['SSH-2.0-x\r\n\r\n', /not a reply of the daemon/],
    ['HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n', /not a reply of the daemon/],
    ['HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf', /ended the connection/],
    ['', /ended the connection/],
  ] as const) {
    context.say = (_, socket) => void socket.end(text)
    const error = await post(poster, '{}').catch(error => error)
    assert.match(String(error.message), why, text)
  }
  context.say = (_, socket) => void socket.write(ok('fine'))
  assert.is((await post(poster, '{}')).text, 'fine')
})

test('a connection closed by the daemon is not reused', async context => {
  context.say = (_, socket) => void socket.write(ok('fine'))
  const { poster, connections } = context
  await post(poster, '{}')
  const [first] = connections
  first?.end()
  if (first && !first.destroyed) await once(first, 'close')
  assert.is((await post(poster, '{}')).text, 'fine')
})

test.run()
