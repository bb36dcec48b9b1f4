import { once } from 'node:events'
import net from 'node:net'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { WebSocket } from 'ws'
import { describe } from '../../../kernel/kit/annotations/index.js'
import { channelled, definePlugin, ok, type Plugin, routeOf } from '../../../kernel/plugin.js'
import { VirtualClock } from '../../../testing/virtual-clock.js'
import { ask, DOORS, type DoorName, type Doors, openDoors, parseReply, pause, send, until } from './doors.js'

const route = routeOf<unknown>(describe('Test'))

/** What the sources tell of themselves; they outlive the plugin that serves them. */
class World {
  asked = 0
  pulled = 0
  stopped = 0
}

type Source = (world: World, signal: AbortSignal) => AsyncIterable<unknown>

const sources: Record<string, Source> = {
  async *one(_world, signal) {
    yield { n: 1 }
    await new Promise(resolve => signal.addEventListener('abort', resolve))
  },
  async *ends() {
    yield { n: 1 }
  },
  async *hangs() {},
  async *fast(world) {
    for (;;) {
      world.pulled++
      yield { n: 1, text: 'x'.repeat(64 * 1024) }
    }
  },
  async *breaks() {
    yield { n: 1 }
    throw new Error('the password is hunter2')
  },
  async *strange() {
    yield { n: 'one' }
  },
}

const Message = v.object({ n: v.optional(v.number()), text: v.optional(v.string()), code: v.optional(v.string()) })

function speaking(name: string, world: World): Plugin {
  return definePlugin({ name, version: '1.0.0', service: async () => class {} }).surface({
    routes: [
      ...Object.entries(sources).map(([path, source]) =>
        route({
          method: 'GET',
          path: `/api/${name}/${path}`,
          summary: path,
          query: v.object({ after: v.optional(v.pipe(v.string(), v.digits())) }),
          replies: { 101: Message },
          handle: async (_self, { signal }) => {
            world.asked++
            if (path === 'hangs') await new Promise(() => {})
            signal.addEventListener('abort', () => world.stopped++)
            return channelled({ stream: source(world, signal), failed: ({ code }) => ({ code }) })
          },
        }),
      ),
      route({
        method: 'POST',
        path: `/api/${name}/plain`,
        summary: 'plain',
        body: v.strictObject({ word: v.string() }),
        replies: { 200: v.object({ word: v.string() }) },
        handle: async (_self, { body }) => {
          await pause(20)
          return ok(body)
        },
      }),
      route({
        method: 'GET',
        path: `/api/${name}/get`,
        summary: 'get',
        replies: { 200: v.object({}) },
        handle: () => ok({}),
      }),
    ],
  }) as Plugin
}

/** Opens a channel and keeps what comes: messages, at the end code and reason. */
function open(doors: Doors, url: string, door: DoorName = 'socket', headers: Record<string, string> = {}, more = {}) {
  const address = door === 'tcp' ? `ws://127.0.0.1:${doors.port}${url}` : `ws+unix:${doors.socketPath}:${url}`
  const socket = new WebSocket(address, { headers, perMessageDeflate: false, ...more })
  const messages: unknown[] = []
  socket.on('message', data => messages.push(JSON.parse(String(data))))
  socket.on('error', () => {})
  const closed = new Promise<string>(resolve => socket.once('close', (code, why) => resolve(`${code} ${why}`.trim())))
  return { socket, messages, closed, first: new Promise(resolve => socket.once('message', resolve)) }
}

const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='
const handshake = (url: string, more: Record<string, string> = {}) => {
  const headers = {
    Host: 'localhost',
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': KEY,
    ...more,
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `GET ${url} HTTP/1.1\r\n${lines.join('')}\r\n`
}
/** What is answered to a handshake that is refused. */
const refusal = async (where: object, url: string, more?: Record<string, string>) => {
  const { status, head, body } = parseReply(await send(where, handshake(url, more)))
  return { said: `${status} ${(body as { code?: string }).code}`, head }
}

const world = new World()
const doors = await openDoors([speaking('talk', world), speaking('other', new World())])
const { host } = doors.kernel
const open1 = (url = '/api/talk/one', door?: DoorName) => open(doors, url, door)
const counts = () => host.streams().talk ?? 0

test('both transports deliver messages, count the channel as a stream, and survive reloads of other plugins', async () => {
  for (const door of DOORS) {
    const channel = open1('/api/talk/one?after=1', door)
    await channel.first
    assert.equal(channel.messages, [{ n: 1 }])
    assert.is(counts(), 1)
    await host.reload(speaking('other', new World()))
    assert.equal([counts(), channel.socket.readyState], [1, WebSocket.OPEN])
    const { stopped } = world
    channel.socket.close(1000)
    assert.is(await channel.closed, '1000')
    await until(() => counts() === 0 && world.stopped === stopped + 1)
  }
  assert.is(await open1('/api/talk/ends').closed, '1000')
})

test('checks of a request apply to a channel, with the same errors', async () => {
  const before = world.asked
  const host = `127.0.0.1:${doors.port}`
  const { tcp, socket } = doors.where
  const cases: [object, Record<string, string>, string][] = [
    [tcp, { Host: host, Origin: 'http://evil.example' }, '403 cross_site'],
    [tcp, { Host: host, Origin: `https://${host}` }, '403 cross_site'],
    [tcp, { Host: host, Origin: 'null' }, '403 cross_site'],
    [tcp, { Host: host, 'Sec-Fetch-Site': 'cross-site' }, '403 cross_site'],
    [tcp, { Host: 'rebound.example' }, '421 misdirected'],
    [tcp, { Host: host, 'Sec-WebSocket-Version': '7' }, '426 upgrade_required'],
    [socket, { 'Sec-WebSocket-Key': 'short' }, '426 upgrade_required'],
    [socket, { 'Sec-WebSocket-Protocol': 'a,,b' }, '426 upgrade_required'],
  ]
  for (const [where, headers, expected] of cases)
    assert.is((await refusal(where, '/api/talk/one', headers)).said, expected, JSON.stringify(headers))
  assert.is((await refusal(socket, '/api/talk/one?after=x')).said, '400 invalid_query')
  assert.is((await refusal(socket, '/api/talk/none')).said, '404 route_not_found')
  assert.is((await refusal(socket, '/api/talk/get')).said, '400 invalid_request')
  // Of the handshakes three were asked for and not made: whoever was asked is told that it is over.
  assert.is(world.asked, before + 3)
  await until(() => world.stopped === world.asked)
  assert.equal(counts(), 0)
  const own = open(doors, '/api/talk/one', 'tcp', { Origin: `http://${host}`, 'Sec-Fetch-Site': 'same-origin' })
  await own.first
  own.socket.terminate()
})

test('a request without an upgrade to WebSocket is refused with the next step', async () => {
  const { status, body, headers } = await ask(doors.where.socket, '/api/talk/one')
  assert.equal([status, body.code], [426, 'upgrade_required'])
  assert.equal([headers.upgrade, headers['sec-websocket-version']], ['websocket', '13'])
  assert.is((await doors.kernel.inject({ method: 'GET', url: '/api/talk/one' })).status, 426)
})

test('an upgrade to another protocol is ignored, with its body and later requests', async () => {
  const body = '{"word":"ü"}'
  const head = `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`
  const h2c = 'connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nHTTP2-Settings: x\r\n'
  const both = `POST /api/talk/plain HTTP/1.1\r\nhost: x\r\n${h2c}${head}\r\n${body}`
  const next = 'GET /api/talk/get HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'
  const text = await send(doors.where.socket, both + next)
  // Or the reply says that nothing on the connection will be answered.
  const ends = /^connection: close/im.test(text.slice(0, text.indexOf('\r\n\r\n')))
  assert.equal(text.match(/HTTP\/1\.1 \d+/g), ends ? ['HTTP/1.1 200'] : ['HTTP/1.1 200', 'HTTP/1.1 200'])
  assert.ok(text.includes(body))
})

test('bytes behind an unanswered request are not taken for a handshake', async () => {
  const body = '{"word":"a"}'
  const head = `content-type: application/json\r\ncontent-length: ${body.length}\r\n`
  const { asked: requests } = world
  const slow = `POST /api/talk/plain HTTP/1.1\r\nhost: x\r\n${head}\r\n${body}`
  assert.not.match(await send(doors.where.socket, slow + handshake('/api/talk/one')), '101')
  assert.is(world.asked, requests)
  assert.is((await ask(doors.where.socket, '/api/talk/get')).status, 200)
})

test('a client that sends messages, too much data or invalid frames gets the reason of the close', async () => {
  const says: Record<string, (socket: WebSocket) => void> = {
    '1008': socket => socket.send('hello'),
    '1003': socket => socket.send(Buffer.from('hello')),
    '1009': socket => socket.send('x'.repeat(100_000)),
    '1007': socket => socket.send(Buffer.from([0xff, 0xfe]), { binary: false }),
    '1002': socket => socket.send('unmasked', { mask: false }),
  }
  for (const [code, say] of Object.entries(says)) {
    const channel = open1()
    await channel.first
    say(channel.socket)
    assert.match(await channel.closed, new RegExp(`^${code}`))
  }
  await until(() => counts() === 0)
  assert.equal(host.faults(), [])
})

test('an exception of a source is sent in the format of the channel, and the source is named', async () => {
  const broken = open1('/api/talk/breaks')
  assert.match(await broken.closed, /^1011/)
  assert.equal(broken.messages, [{ n: 1 }, { code: 'internal' }])
  const strange = open1('/api/talk/strange')
  assert.match(await strange.closed, /^1011/)
  assert.equal(strange.messages, [{ code: 'reply_invalid' }])
  const named = host.faults().map(({ owner, where }) => `${owner} ${where}`)
  assert.equal(named, ['talk stream /api/talk/breaks', 'talk stream /api/talk/strange'])
})

test('a slow or dead reader holds back its source and is closed after a time', async () => {
  const clock = new VirtualClock()
  const mine = new World()
  const own = await openDoors([speaking('talk', mine)], clock)
  const lazy = net.connect(own.socketPath)
  lazy.pause()
  lazy.write(handshake('/api/talk/fast'))
  await until(() => mine.pulled > 0)
  let before = -1
  while (before !== mine.pulled) {
    before = mine.pulled
    await pause(50)
  }
  assert.ok(mine.pulled < 40, `${mine.pulled} messages of 64 KiB for nobody`)
  const dead = open(own, '/api/talk/one', 'socket', {}, { autoPong: false })
  const alive = open(own, '/api/talk/one')
  await Promise.all([dead.first, alive.first])
  const ponged = once(alive.socket, 'ping')
  await clock.advance(15_000)
  await ponged
  assert.equal(own.kernel.host.streams(), { talk: 3 })
  // What answers this one has had the answer to the other.
  const heard = once(alive.socket, 'pong')
  alive.socket.ping()
  await heard
  await clock.advance(15_000)
  await until(() => own.kernel.host.streams().talk === 1)
  assert.is(await dead.closed, '1006')
  assert.is(alive.socket.readyState, WebSocket.OPEN)
  const rest: Buffer[] = []
  lazy.on('data', data => rest.push(data))
  lazy.resume()
  await once(lazy, 'end')
  const tail = Buffer.concat(rest).subarray(-200)
  assert.ok(tail.includes('{"code":"slow_consumer"}'), 'its last message')
  const close = tail.lastIndexOf(Buffer.from([0x03, 0xf5]))
  assert.ok(
    close > 0 &&
      tail
        .subarray(close + 2)
        .toString()
        .startsWith('messages were not read'),
    '1013',
  )
  lazy.destroy()
  assert.equal(own.kernel.host.faults(), [])
  const closed = alive.closed
  await own.close()
  assert.match(await closed, /^1001/)
})

test('a reload of its plugin asks the reader to reconnect, and new requests wait for the new version', async () => {
  const channel = open1()
  await channel.first
  const reloading = host.reload(speaking('talk', world))
  assert.match(await channel.closed, /^1012/)
  const waiting = open1()
  await reloading
  await waiting.first
  assert.is(counts(), 1)
  waiting.socket.terminate()
  await until(() => counts() === 0)
})

test('a shutdown closes the channels of each transport with 1001, and unresponsive peers', async () => {
  const channels = DOORS.map(door => open1('/api/talk/one', door))
  await Promise.all(channels.map(({ first }) => first))
  const lazy = net.connect(doors.socketPath)
  lazy.on('error', () => {})
  lazy.pause()
  lazy.write(handshake('/api/talk/fast'))
  await until(() => counts() === 3)
  const { asked: requests } = world
  const hanging = open1('/api/talk/hangs')
  await until(() => world.asked > requests)
  await doors.close()
  assert.is(await hanging.closed, '1006')
  for (const { closed } of channels) assert.match(await closed, /^1001/)
  lazy.destroy()
})

test.run()
