import { once } from 'node:events'
import { readFile, rm } from 'node:fs/promises'
import http from 'node:http'
import https from 'node:https'
import net, { type AddressInfo, type Server, type Socket } from 'node:net'
import tls from 'node:tls'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { encodeFrame, type Source } from '../../../../plugins/platform/streams/api.js'
import { eventWire } from '../../../../plugins/platform/streams/event-wire.js'
import { StreamHub } from '../../../../plugins/platform/streams/hub.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { Authority } from '../../../harness/certificates.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { Dice, forSeeds } from '../../../kernel/fixtures/dice.js'
import { pause } from '../../../kernel/http/doors.js'

// Readers of the same frames over TCP and TLS, with chunks and without, come, pause, end their side and break off, while frames of
// all sizes come: each gets a whole, gapless part of them, and all of them before the end of the daemon.

const ROUNDS = 3
const STEPS = 120
const KINDS = ['plain', 'old', 'behind', 'tls', 'tls behind'] as const
type Kind = (typeof KINDS)[number]

/** Frames for all readers, each from where it came. */
class Frames {
  readonly all: Uint8Array[] = []
  readonly #readers = new Set<() => void>()

  add(bytes: number): void {
    const id = String(this.all.length)
    this.all.push(encodeFrame({ id, data: { bytes, text: 'é'.repeat(bytes) } }))
    for (const reader of [...this.#readers]) reader()
  }

  /** @param at the first frame */
  source(signal: AbortSignal, at = this.all.length): Source<Uint8Array> {
    const { all } = this
    let next = at
    const changed = () =>
      new Promise<void>(resolve => {
        const done = () => {
          this.#readers.delete(done)
          signal.removeEventListener('abort', done)
          resolve()
        }
        this.#readers.add(done)
        signal.addEventListener('abort', done)
      })
    return {
      async *[Symbol.asyncIterator]() {
        while (!signal.aborted) {
          const frame = all[next]
          if (frame) {
            next++
            yield frame
          } else await changed()
        }
      },
      pushTo: send =>
        new Promise(resolve => {
          const leave = () => {
            this.#readers.delete(reader)
            signal.removeEventListener('abort', leave)
            resolve()
          }
          const reader = () => {
            for (let frame = all[next]; frame; frame = all[next]) {
              next++
              if (!send(frame)) return leave()
            }
          }
          this.#readers.add(reader)
          signal.addEventListener('abort', leave)
          reader()
        }),
    }
  }
}

/** Servers of the frames over TCP and TLS. */
async function serve(hub: StreamHub, frames: Frames, { cert, key }: { readonly cert: string; readonly key: string }) {
  const handle: http.RequestListener = (request, response) => {
    const abort = new AbortController()
    response.once('close', () => abort.abort())
    const few = async function* () {
      yield encodeFrame({ data: 'first' })
    }
    const source = request.url === '/few' ? few() : frames.source(abort.signal, Number(request.headers.from))
    const stream = { owner: 'test', door: 'tcp', actor: {} } as never
    void hub.serve<Uint8Array>(stream, eventWire(response, {}), source, () => encodeFrame({ data: 'failed' }))
  }
  const plain = http.createServer(handle)
  const secure = https.createServer({ cert: await readFile(cert), key: await readFile(key) }, handle)
  for (const server of [plain, secure]) await once(server.listen(0, '127.0.0.1'), 'listening')
  return { plain, secure }
}
const portOf = (server: Server) => (server.address() as AddressInfo).port

/** A program that reads frames from one on. */
class Reader {
  #bytes: Buffer[] = []
  isGone = false

  private constructor(
    readonly kind: Kind,
    readonly from: number,
    readonly socket: Socket,
  ) {
    socket.on('data', bytes => this.#bytes.push(bytes))
    socket.on('error', () => {})
    socket.on('end', () => socket.end())
  }

  static open(kind: Kind, from: number, { plain, secure }: Awaited<ReturnType<typeof serve>>): Reader {
    const socket = kind.startsWith('tls')
      ? tls.connect({ host: '127.0.0.1', port: portOf(secure), rejectUnauthorized: false })
      : net.connect({ host: '127.0.0.1', port: portOf(plain), allowHalfOpen: true })
    const asks = (path: string, version = '1.1', more = '') =>
      `GET ${path} HTTP/${version}\r\nHost: x\r\nFrom: ${from}\r\n${more}\r\n`
    if (kind.endsWith('behind')) socket.write(asks('/few'))
    socket.write(kind === 'old' ? asks('/', '1.0') : asks('/', '1.1', 'Connection: close\r\n'))
    return new Reader(kind, from, socket)
  }

  /** It sends nothing more, for which a server ends the reply; what it got before that is whole. */
  endSide(): void {
    this.isGone = true
    this.socket.end()
  }

  breakOff(): void {
    this.isGone = true
    this.socket.destroy()
  }

  /** The text of its reply so far, without what is not whole. */
  text(): string {
    const bytes = Buffer.concat(this.#bytes)
    let rest = bytes.subarray(bytes.indexOf('\r\n\r\n') + 4)
    if (this.kind === 'old') return rest.toString()
    const parts: Buffer[] = []
    while (rest.length > 0) {
      const line = rest.indexOf('\r\n')
      const head = rest.subarray(0, Math.max(0, line)).toString()
      if (line < 0 || !/^[\da-f]+$/.test(head)) {
        // The head of the reply behind another one.
        const end = rest.indexOf('\r\n\r\n')
        if (end < 0) break
        assert.match(rest.subarray(0, end).toString(), /^HTTP\/1\.1 200 OK\r\n/)
        parts.length = 0
        rest = rest.subarray(end + 4)
        continue
      }
      const size = Number.parseInt(head, 16)
      if (rest.length < line + 4 + size) break
      assert.is(rest.subarray(line + 2 + size, line + 4 + size).toString(), '\r\n')
      parts.push(rest.subarray(line + 2, line + 2 + size))
      rest = rest.subarray(line + 4 + size)
    }
    return Buffer.concat(parts).toString()
  }

  has(id: number): boolean {
    return Buffer.concat(this.#bytes).includes(`id: ${id}\n`)
  }

  /** Its whole frames, and whether its end was told. */
  read(): { readonly ids: readonly number[]; readonly isClosed: boolean } {
    const texts = this.text().split('\n\n').slice(0, -1)
    const isClosed = texts.at(-1)?.startsWith('event: closing') ?? false
    const ids = (isClosed ? texts.slice(0, -1) : texts).flatMap(text => {
      if (text === 'data: "first"' || text === ': keep-alive') return []
      const [, id, data = ''] = /^id: (\d+)\ndata: (.*)$/s.exec(text) ?? []
      assert.ok(id, `a frame that nobody sent: ${text.slice(0, 200)}`)
      const { bytes, text: body } = JSON.parse(data)
      assert.ok(body === 'é'.repeat(bytes))
      return [Number(id)]
    })
    return { ids, isClosed }
  }

  check(): void {
    const { ids } = this.read()
    assert.equal(
      ids,
      ids.map((_, i) => this.from + i),
      this.kind,
    )
  }
}

let authority: { readonly folder: string; readonly cert: string; readonly key: string }
test.before(async () => {
  const folder = await temporaryFolder('crowd')
  const { own } = await Authority.in(folder)
  authority = { folder, ...own }
})
test.after(() => rm(authority.folder, { recursive: true, force: true }))

async function play(seed: number): Promise<void> {
  const dice = new Dice(seed)
  const clock = new VirtualClock()
  const hub = new StreamHub(clock, async () => {})
  const frames = new Frames()
  const servers = await serve(hub, frames, authority)
  const readers: Reader[] = []
  const any = () => dice.of(readers.length > 0 ? readers : [undefined])
  const come = () => {
    if (readers.filter(({ isGone }) => !isGone).length < 12)
      readers.push(Reader.open(dice.of(KINDS), dice.upTo(frames.all.length + 1), servers))
  }
  const burst = () => {
    for (let left = dice.upTo(800); left > 0; left--) frames.add(20)
  }
  const moves: readonly (readonly [weight: number, move: () => unknown])[] = [
    [10, () => frames.add(dice.upTo(300))],
    [3, () => frames.add(dice.upTo(40_000))],
    [1, () => dice.chance(0.3) && frames.add(400_000)],
    [1, burst],
    [6, come],
    [3, () => any()?.socket.pause()],
    [4, () => any()?.socket.resume()],
    [1, () => any()?.breakOff()],
    [1, () => any()?.endSide()],
  ]
  const all = moves.flatMap(([weight, move]) => Array<() => unknown>(weight).fill(move))
  for (let step = 0; step < STEPS; step++) {
    dice.of(all)()
    if (dice.chance(0.05)) await clock.advance(15_000)
    if (dice.chance(0.7)) await pause(dice.upTo(3))
  }
  const left = readers.filter(({ isGone }) => !isGone)
  for (const { socket } of left) socket.resume()
  const last = frames.all.length - 1
  const hasAll = (reader: Reader) => reader.from > last || reader.has(last)
  for (let tries = 0; tries < 100 && !left.every(hasAll); tries++) await pause(100)
  for (const reader of left)
    assert.ok(
      hasAll(reader),
      `not all at a reader (${reader.kind}) from ${reader.from}, ${reader.read().ids.at(-1)} of ${last}`,
    )
  // The daemon stops while the next frames are on their way.
  for (let i = 0; i < 50; i++) frames.add(dice.upTo(20_000))
  hub.end('shutdown')
  frames.add(1)
  for (const { socket } of left) if (!socket.closed) await once(socket, 'close')
  for (const reader of readers) reader.check()
  for (const reader of left) assert.ok(reader.read().isClosed)
  assert.equal(hub.counts(), {})
  for (const server of Object.values(servers)) await new Promise(resolve => server.close(resolve))
}

test('each reader of a crowd gets whole frames without a gap, over every kind of connection', () =>
  forSeeds(ROUNDS, play))

test.run()
