import net from 'node:net'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { describe } from '../../../../kernel/kit/annotations/index.js'
import { definePlugin, type EncodedFrame, type Frame, routeOf, streamed, turn } from '../../../../kernel/plugin.js'
import { encodeFrame } from '../../../../plugins/platform/streams/api.js'
import { openDoors, pause, send, until } from '../../../kernel/http/doors.js'

const route = routeOf<unknown>(describe('Test'))
/** Frames of all kinds: plain, shared, larger than a chunk is made for, empty, and one buffer that is filled again. */
const shared = encodeFrame({ id: '2', event: 'shared', data: 'ü€' })
const large = { event: 'large', data: 'x'.repeat(200_000) }
const TEXT = Buffer.concat([
  encodeFrame({ data: 'plain' }),
  ...[shared, shared],
  encodeFrame(large),
  ...['data: 1\n\n', 'data: 2\n\n', 'data: 3\n\n'].map(text => Buffer.from(text)),
]).toString()

async function* pieces(): AsyncGenerator<Frame | EncodedFrame> {
  yield { data: 'plain' }
  yield shared
  yield new Uint8Array(0)
  yield shared
  yield large
  const again = Buffer.alloc(9)
  for (const n of [1, 2, 3]) {
    again.write(`data: ${n}\n\n`)
    yield again
    await turn()
  }
}

/** The route of the pieces, and one that counts how many frames of 10 KB were asked for. */
async function open() {
  const asked = { count: 0 }
  const flood = async function* (signal: AbortSignal) {
    while (!signal.aborted && asked.count < 3000) yield { data: `${asked.count++} ${'x'.repeat(10_000)}` }
  }
  const get = (path: string, source: (signal: AbortSignal) => AsyncIterable<Frame | EncodedFrame>) =>
    route({
      method: 'GET',
      path,
      summary: path,
      contentType: 'text/event-stream',
      frames: v.unknown(),
      replies: { 200: v.unknown() },
      handle: async (_, { signal }) => streamed(source(signal)),
    })
  const routes = [get('/api/pieces', pieces), get('/api/flood', flood)]
  const plugin = definePlugin({ name: 'pieces', version: '1.0.0' }).surface({ routes })
  return { asked, doors: await openDoors([plugin], undefined, {}, false) }
}

/** The bodies of replies in raw bytes, one after the other. */
function bodies(text: string): string[] {
  const all: string[] = []
  let rest = Buffer.from(text)
  while (rest.length > 0) {
    rest = rest.subarray(rest.indexOf('\r\n\r\n') + 4)
    let body = ''
    for (let size = -1; size !== 0; ) {
      const at = rest.indexOf('\r\n')
      size = Number.parseInt(rest.subarray(0, at).toString(), 16)
      body += rest.subarray(at + 2, at + 2 + size)
      assert.is(rest.subarray(at + 2 + size, at + 4 + size).toString(), '\r\n')
      rest = rest.subarray(at + 4 + size)
    }
    all.push(body)
  }
  return all
}

const asking = (path: string, version = '1.1', method = 'GET') =>
  `${method} ${path} HTTP/${version}\r\nHost: localhost\r\n`

test('frames of all kinds arrive whole, also at a request that waits behind another one', async () => {
  const { doors } = await open()
  const first = `${asking('/api/pieces')}\r\n`
  const reply = await send(doors.where.socket, `${first}${first}${asking('/api/pieces')}Connection: close\r\n\r\n`)
  assert.equal(bodies(reply), [TEXT, TEXT, TEXT])
  await doors.close()
})

test('a reader of HTTP/1.0 gets no chunks, and HEAD no body', async () => {
  const { doors } = await open()
  const old = await send(doors.where.socket, `${asking('/api/pieces', '1.0')}\r\n`)
  assert.is(old.slice(old.indexOf('\r\n\r\n') + 4), TEXT)
  const head = await send(doors.where.socket, `${asking('/api/pieces', '1.1', 'HEAD')}Connection: close\r\n\r\n`)
  assert.match(head, /^HTTP\/1\.1 \d+ .*\r\n\r\n$/s)
  await doors.close()
})

test('a full socket holds the source back, also after its reader has ended its side', async () => {
  const { asked, doors } = await open()
  const read = () => {
    const socket = net.connect({ path: doors.socketPath, allowHalfOpen: true })
    socket.write(`${asking('/api/flood')}Connection: close\r\n\r\n`)
    return socket.pause().on('error', () => {})
  }
  const settled = async () => {
    for (let before = -1; before !== asked.count; await pause(50)) before = asked.count
    return asked.count
  }
  const ended = read()
  await until(() => asked.count > 0)
  assert.ok((await settled()) < 300)
  ended.end()
  assert.ok((await settled()) < 300)
  ended.destroy()
  await until(() => doors.kernel.host.streams().pieces === undefined)
  asked.count = 0
  const slow = read()
  await until(() => asked.count > 0)
  assert.ok((await settled()) < 300)
  const all: Buffer[] = []
  slow.on('data', (bytes: Buffer) => all.push(bytes)).resume()
  await until(() => slow.destroyed || slow.readableEnded)
  const [body = ''] = bodies(Buffer.concat(all).toString())
  assert.equal(
    [...body.matchAll(/data: "(\d+) /g)].map(([, n]) => Number(n)),
    Array.from({ length: 3000 }, (_, n) => n),
  )
  slow.destroy()
  await doors.close()
})

test.run()
