import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { WebSocket } from 'ws'
import { LIMITS, Listener, type ServerFollower } from '../../../kernel/http/listeners.js'
import { describe } from '../../../kernel/kit/annotations/index.js'
import { channelled, definePlugin, ok, type Plugin, routeOf, streamed } from '../../../kernel/plugin.js'
import { encodeFrame } from '../../../plugins/platform/streams/api.js'
import { boundConnections } from '../../../plugins/platform/streams/connections.js'
import { ask, type DoorName, type Doors, openDoors, parseReply, pause, send, until } from './doors.js'

const route = routeOf<unknown>(describe('Test'))
const MOST = 2

class World {
  asked = 0
  stopped = 0
  /** Ends all sources. */
  end: () => void = () => {}
  over = new Promise<void>(resolve => {
    this.end = resolve
  })
}

type Source = (world: World, signal: AbortSignal) => AsyncIterable<{ data: { n: unknown } }>

const sources = {
  async *waits({ over }: World, signal: AbortSignal) {
    yield { data: { n: 1 } }
    await Promise.race([over, new Promise(resolve => signal.addEventListener('abort', resolve))])
  },
  async *breaks({ over }: World) {
    yield { data: { n: 1 } }
    await over
    throw new Error('broken')
  },
  async *strange({ over }: World) {
    yield { data: { n: 1 } }
    await over
    yield { data: { n: 'two' } }
  },
}

const Body = v.object({ n: v.optional(v.number()), code: v.optional(v.string()) })
const frames = v.strictObject({ id: v.optional(v.string()), data: Body })

function streaming(name: string, world: World): Plugin {
  const get = (at: string, kind: 'events' | 'channel') =>
    route({
      method: 'GET',
      path: `/api/${name}/${kind}/${at}`,
      summary: at,
      ...(kind === 'events' ? { contentType: 'text/event-stream', frames } : {}),
      replies: kind === 'events' ? { 200: Body } : { 101: Body },
      handle: async (_self, { signal }) => {
        world.asked++
        signal.addEventListener('abort', () => world.stopped++)
        if (at === 'hangs') await new Promise(() => {})
        const source = (sources as Record<string, Source>)[at]?.(world, signal)
        if (!source) throw new Error('thrown')
        if (kind === 'events') return streamed(source)
        const bodies = async function* () {
          for await (const { data } of source) yield data
        }
        return channelled({ stream: bodies(), failed: ({ code }) => ({ code }) })
      },
    })
  return definePlugin({ name, version: '1.0.0', service: async () => class {} }).surface({
    routes: [
      ...['waits', 'breaks', 'strange', 'hangs', 'throws'].flatMap(at => [get(at, 'events'), get(at, 'channel')]),
      route({
        method: 'POST',
        path: `/api/${name}/either`,
        summary: 'either',
        headers: { Accept: { required: false } },
        frames,
        replies: { 200: Body },
        handle: (_self, { headers, signal }) => {
          world.asked++
          if (!headers.accept) return ok({})
          return headers.accept.includes('plain')
            ? ok({})
            : streamed(sources.waits?.(world, signal) ?? assert.unreachable())
        },
      }),
      route({
        method: 'GET',
        path: `/api/${name}/undeclared`,
        summary: 'undeclared',
        replies: { 200: Body },
        handle: () => streamed((async function* () {})()),
      }),
    ],
  }) as Plugin
}

/** A reader of either kind, open when its first frame has come. */
interface Reader {
  readonly opened: Promise<unknown>
  readonly text: () => string
  readonly over: Promise<unknown>
  go(): void
}

/** Whoever waits for it hears that it failed. */
function reader(it: Reader): Reader {
  for (const early of [it.opened, it.over]) early.catch(() => {})
  return it
}

function openEvents({ where }: Doors, door: DoorName, url: string, method = 'GET'): Reader {
  let text = ''
  const request = http.request({
    ...where[door],
    path: url,
    method,
    headers: { accept: 'text/event-stream' },
    agent: false,
  })
  const opened = new Promise((resolve, reject) => {
    request.on('response', response => {
      if (response.statusCode !== 200) reject(new Error(String(response.statusCode)))
      response.setEncoding('utf8').on('data', data => {
        text += data
        resolve(undefined)
      })
      response.on('error', () => {})
    })
  })
  request.on('error', () => {})
  request.end()
  return reader({ opened, text: () => text, over: once(request, 'close'), go: () => request.destroy() })
}

function openChannel({ port, socketPath }: Doors, door: DoorName, url: string): Reader {
  const socket = new WebSocket(door === 'tcp' ? `ws://127.0.0.1:${port}${url}` : `ws+unix:${socketPath}:${url}`)
  let text = ''
  socket.on('message', data => (text += data))
  socket.on('error', () => {})
  return reader({
    opened: once(socket, 'message'),
    text: () => text,
    over: once(socket, 'close'),
    go: () => socket.terminate(),
  })
}

const KINDS = { events: openEvents, channel: openChannel }
const HANDSHAKE =
  'host: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n'

const worlds = { now: new World() }
const doors = await openDoors([streaming('flow', worlds.now)], undefined, { max_streams: MOST })
const { host } = doors.kernel

/** Status and code of one more stream of this kind, which is refused. */
async function refused(kind: 'events' | 'channel', door: DoorName, at = 'waits'): Promise<string> {
  const url = `/api/flow/${kind}/${at}`
  const host = door === 'tcp' ? `127.0.0.1:${doors.port}` : 'localhost'
  if (kind === 'events') {
    const { status, body } = await ask(doors.where[door], url)
    return `${status} ${body.code}`
  }
  const text = await send(doors.where[door], `GET ${url} HTTP/1.1\r\n${HANDSHAKE.replace('localhost', host)}\r\n`)
  const { status, body } = parseReply(text)
  return `${status} ${(body as { code?: string }).code}`
}

/** Opens as many as there may be, and sees that one more of either kind is refused without its handler being asked. */
async function fill(door: DoorName, url: (kind: string) => string, kinds: readonly ('events' | 'channel')[]) {
  // What was ended lets go of its place when the daemon has noticed.
  await until(() => Object.keys(host.streams()).length === 0)
  const readers = kinds.map(kind => KINDS[kind](doors, door, url(kind)))
  await Promise.all(readers.map(({ opened }) => opened))
  const { asked: requests } = worlds.now
  for (const kind of ['events', 'channel'] as const) assert.is(await refused(kind, door), '429 too_many_streams')
  assert.is(worlds.now.asked, requests)
  return readers
}

const BOTH = ['events', 'channel'] as const
const renew = async () => {
  worlds.now = new World()
  await host.reload(streaming('flow', worlds.now))
}

test('a transport limits streams of either kind over all callers, separately from the other', async () => {
  for (const kinds of [BOTH, ['events', 'events'], ['channel', 'channel']] as const) {
    const readers = await fill('tcp', kind => `/api/flow/${kind}/waits`, kinds)
    const others = await Promise.all(
      BOTH.map(async kind => {
        const reader = KINDS[kind](doors, 'socket', `/api/flow/${kind}/waits`)
        await reader.opened
        return reader
      }),
    )
    assert.is((await ask(doors.where.tcp, '/api/flow/either', { method: 'POST' })).status, 200)
    for (const reader of [...readers, ...others]) reader.go()
  }
})

test('a slot is released however a stream ends', async () => {
  const ends: Record<string, { at?: string; end(readers: readonly Reader[]): unknown }> = {
    'the readers go': { end: readers => readers.map(reader => reader.go()) },
    'the sources end': { end: () => worlds.now.end() },
    'the sources throw': { at: 'breaks', end: () => worlds.now.end() },
    'a frame is not as declared': { at: 'strange', end: () => worlds.now.end() },
    'their plugin is replaced': { end: renew },
    'their plugin is unloaded': {
      end: async () => {
        await host.unload('flow')
        worlds.now = new World()
        await host.load(streaming('flow', worlds.now))
      },
    },
  }
  for (const [what, { at = 'waits', end }] of Object.entries(ends)) {
    const readers = await fill('socket', kind => `/api/flow/${kind}/${at}`, BOTH)
    await end(readers)
    await Promise.all(readers.map(({ over }) => over))
    if (at === 'strange') for (const { text } of readers) assert.match(text(), 'reply_invalid', what)
    await renew()
    for (const reader of await fill('socket', kind => `/api/flow/${kind}/waits`, BOTH)) reader.go()
  }
})

test('a request that never becomes a stream takes no slot', async () => {
  const { where } = doors
  for (let i = 0; i <= MOST; i++) {
    for (const kind of BOTH) assert.is(await refused(kind, 'socket', 'throws'), '500 internal')
    assert.is((await ask(where.socket, '/api/flow/channel/waits')).status, 426)
    assert.is((await ask(where.socket, '/api/flow/events/waits', { method: 'HEAD' })).status, 404)
    const bad = `GET /api/flow/channel/waits HTTP/1.1\r\n${HANDSHAKE.replace('version: 13', 'version: 7')}\r\n`
    assert.is(parseReply(await send(where.socket, bad)).status, 426)
    const plain = { method: 'POST', headers: { accept: 'text/event-stream, plain' } }
    assert.is((await ask(where.socket, '/api/flow/either', plain)).status, 200)
    assert.is((await doors.kernel.inject({ url: '/api/flow/either', ...plain })).status, 200)
    assert.is((await doors.kernel.inject({ url: '/api/flow/events/throws', method: 'GET' })).status, 500)
  }
  // Of handlers that do not answer those hold a place whose callers wait.
  const { asked: requests, stopped } = worlds.now
  const hanging = BOTH.map(kind => KINDS[kind](doors, 'socket', `/api/flow/${kind}/hangs`))
  await until(() => worlds.now.asked === requests + MOST)
  assert.is(await refused('events', 'socket'), '429 too_many_streams')
  for (const { go } of hanging) go()
  await until(() => worlds.now.stopped === stopped + MOST)
  for (const reader of await fill('socket', kind => `/api/flow/${kind}/waits`, BOTH)) reader.go()
})

test('only stream requests are refused by the stream limit', async () => {
  const readers = await fill('socket', kind => `/api/flow/${kind}/waits`, BOTH)
  const either = (headers = {}) => ask(doors.where.socket, '/api/flow/either', { method: 'POST', headers })
  assert.is((await either()).status, 200)
  assert.is((await either({ accept: 'text/event-stream' })).status, 429)
  for (const reader of readers) reader.go()
  await until(() => Object.keys(host.streams()).length === 0)
  const taken = openEvents(doors, 'socket', '/api/flow/either', 'POST')
  await taken.opened
  taken.go()
})

test('a stream that its route does not declare is refused as an invalid reply', async () => {
  assert.is((await ask(doors.where.socket, '/api/flow/undeclared')).body.code, 'reply_invalid')
})

test('a raised limit applies at once', async () => {
  const readers = await fill('socket', kind => `/api/flow/${kind}/waits`, BOTH)
  // The daemon begins to watch the file a moment after its start, and reads it then.
  writeFileSync(path.join(doors.home, 'config.json'), '{ "http": { "port": 0, "max_streams": 3 } }')
  let more: Reader | undefined
  while (!more) {
    const reader = openEvents(doors, 'socket', '/api/flow/events/waits')
    const opened = await reader.opened.then(() => true).catch(() => false)
    if (opened) more = reader
    else await pause(20)
  }
  for (const reader of [...readers, more]) reader.go()
})

test('an encoded frame is checked against the schema like any other', async () => {
  const own = await openDoors([
    definePlugin({ name: 'raw', version: '1.0.0', service: async () => class {} }).surface({
      routes: [
        route({
          method: 'GET',
          path: '/api/raw',
          summary: 'raw',
          contentType: 'text/event-stream',
          frames: v.variant('event', [
            v.strictObject({ event: v.literal('n'), id: v.string(), data: v.object({ n: v.number() }) }),
            v.strictObject({ event: v.literal('last'), data: v.literal('[DONE]') }),
          ]),
          replies: { 200: v.unknown() },
          handle: () =>
            streamed(
              (async function* () {
                yield encodeFrame({ id: '1', event: 'n', data: { n: 1 } })
                yield Buffer.from('event: last\ndata: [DONE]\n\n')
                yield encodeFrame({ id: '2', event: 'n', data: { n: 'x: y\n' } })
                yield encodeFrame({ id: '3', event: 'n', data: { n: 3 } })
              })(),
            ),
        }),
      ],
    }) as Plugin,
  ])
  const { text } = await ask(own.where.socket, '/api/raw')
  assert.match(
    text,
    /^id: 1\nevent: n\ndata: \{"n":1\}\n\nevent: last\ndata: \[DONE\]\n\nevent: error\n.*reply_invalid/,
  )
  assert.not.match(text, /id: [23]/)
  assert.match(own.kernel.host.faults()[0]?.error ?? '', 'data.n: Invalid type')
  await own.close()
})

test('connections are bounded; closed connections are reported once per episode', async () => {
  const notices: string[] = []
  const folder = mkdtempSync(path.join(os.tmpdir(), 'svc-many-'))
  const where = { socketPath: path.join(folder, 'many.sock') }
  const bounded: ServerFollower = (server, _, door) => boundConnections(server, door, 4, text => notices.push(text))
  const limits = { ...LIMITS, opened: bounded }
  const listener = await Listener.socket(where.socketPath, (_door, _request, response) => response.end('{}'), limits)
  const connect = async () => {
    const socket = net.connect(where.socketPath)
    socket.on('error', () => {})
    await once(socket, 'connect')
    return socket
  }
  for (let round = 1; round <= 2; round++) {
    const open: net.Socket[] = []
    for (let i = 0; i < 4; i++) open.push(await connect())
    for (let i = 0; i < 3; i++) {
      const turned = await connect()
      await once(turned, 'close')
    }
    assert.is(notices.length, round)
    // Those that are in are served; one that goes makes room.
    const [first] = open
    first?.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
    await once(first as net.Socket, 'data')
    for (const socket of open) socket.destroy()
    let answer: { status: number } | undefined
    while (!answer) answer = await ask(where, '/').catch(() => undefined)
    assert.is(answer.status, 200)
  }
  await listener.close(Promise.resolve())
})

test.after(() => doors.close())

test.run()
