import type { ServerResponse } from 'node:http'
import type { Writable } from 'node:stream'
import type { Clock } from '../contract/basics.js'
import { KernelErrors } from '../contract/errors.js'
import type { Actor } from '../contract/record.js'
import type { Door, EncodedFrame, Frame, StreamReply } from '../contract/route.js'
import { HttpErrors } from './errors.js'

export const EVENT_STREAM = 'text/event-stream'
const BEAT_MS = 15_000
/** Characters of one frame's data: room for the largest record of a journal and what is put around it. */
const FRAME_LIMIT = 32 * 1024 * 1024

/** Why a stream is over: how it is with its source, its owner, the daemon and its reader. */
export type Ending =
  | 'done'
  | 'failed'
  | 'replaced'
  | 'shutdown'
  | 'dismissed'
  | 'slow'
  | 'spoke'
  | 'spoke_binary'
  | 'gone'

/** How frames reach one reader. */
export interface Wire<F> {
  /** What they are written into: while it is full, the source waits. */
  readonly into: Writable
  /** Tells when the reader is gone, or does what ends the stream. */
  watch(over: (how: Ending) => void): unknown
  send(frame: F): unknown
  /** Every 15 s: something for the reader to get, or how it was found to be over. */
  beat(): Ending | undefined
  /** Says how it ended, and lets go. */
  end(how: Ending): unknown
}

/** What a stream is ended by. */
interface StreamKey {
  readonly owner: string
  readonly door: Door
  readonly actor: Actor
}

/**
 * Streams of any wire, kept here and not in a generation, so that another plugin's reload touches none. Backpressure goes to
 * the source: the next frame is asked for when the reader's socket took the last.
 */
export class StreamHub {
  readonly #open = new Map<(how: Ending) => void, StreamKey>()
  readonly #places: Readonly<Record<Door, Set<unknown>>> = { socket: new Set(), tcp: new Set(), inject: new Set() }

  /** @param most streams of one door, so that whoever floods one leaves the others their own */
  constructor(
    private readonly clock: Clock,
    private readonly durable: () => Promise<void>,
    private readonly most: () => number,
  ) {}

  /** Counts a stream before anything is done for it; to be called back when it is over. Throws `too_many_streams`. */
  enter(door: Door): () => void {
    const places = this.#places[door]
    if (places.size >= this.most()) throw HttpErrors.too_many_streams()
    const place = {}
    places.add(place)
    return () => places.delete(place)
  }

  /** Open streams by owner. */
  counts(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {}
    for (const { owner } of this.#open.values()) counts[owner] = (counts[owner] ?? 0) + 1
    return counts
  }

  /**
   * Sends frames until the source ends or throws, the reader goes or the owner goes; `failed` makes the last frame of a fault
   * and does not throw. Never rejects, and settles at once when it is over, whatever the source is doing.
   */
  async serve<F>(
    key: StreamKey,
    wire: Wire<F>,
    source: AsyncIterable<F>,
    failed: (error: unknown) => F,
  ): Promise<void> {
    let over = 'no' as 'no' | Ending
    let end: () => void = () => {}
    // Not Promise.race: what it was called with keeps all of its calls, and a stream has many.
    const unlessOver = <T>(work: Promise<T>) =>
      new Promise<T | undefined>((resolve, reject) => {
        end = () => resolve(undefined)
        work.then(resolve, reject)
        if (over !== 'no') end()
      })
    const stop = (how: Ending) => {
      if (over === 'no') over = how
      end()
    }
    this.#open.set(stop, key)
    wire.watch(stop)
    const beat = this.#beat(wire, stop)
    const iterator = source[Symbol.asyncIterator]()
    try {
      while (over === 'no') {
        const next = await unlessOver(iterator.next())
        if (!next || next.done) break
        await unlessOver(this.durable())
        // A frame after the last one would be lost: the reader has gone to ask again for what follows what it has.
        if (over === 'no') wire.send(next.value)
        if (wire.into.writableNeedDrain) await unlessOver(drained(wire.into))
      }
    } catch (error) {
      // The source may throw because it was told to stop; that is nobody's failure.
      if (over === 'no') wire.send(failed(error))
      stop('failed')
    }
    beat.stop()
    this.#open.delete(stop)
    // Not awaited: a source that waits for its next frame returns only when its signal aborts.
    void Promise.resolve(iterator.return?.()).catch(() => {})
    if (over === 'slow') wire.send(failed(HttpErrors.slow_consumer()))
    if (over === 'dismissed')
      wire.send(failed(KernelErrors.identity_required('the token that opened this stream is no longer valid')))
    wire.end(over === 'no' ? 'done' : over)
  }

  /** Ends these streams; readers come back for what follows, as far as they may. */
  end(how: Ending, isOne: (key: StreamKey) => boolean = () => true): void {
    for (const [stop, key] of [...this.#open]) if (isOne(key)) stop(how)
  }

  #beat(wire: Wire<never>, stop: (how: Ending) => void): { stop(): void } {
    let timer = this.clock.timeout(BEAT_MS, beat)
    const clock = this.clock
    function beat() {
      const how = wire.beat()
      if (how) stop(how)
      timer = clock.timeout(BEAT_MS, beat)
    }
    return { stop: () => timer.cancel() }
  }
}

const drained = (into: Writable) => new Promise<void>(resolve => into.once('drain', resolve))

/** Server-sent events; a reader that waits is let wait, for people stop their terminals. */
export function eventWire(into: ServerResponse, headers: StreamReply['headers']): Wire<Frame | EncodedFrame> {
  into.writeHead(200, {
    ...headers,
    'content-type': `${EVENT_STREAM}; charset=utf-8`,
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  })
  into.flushHeaders()
  return {
    into,
    watch: over => into.once('close', () => over('gone')),
    send: frame => into.write(frame instanceof Uint8Array ? frame : encodeFrame(frame)),
    beat() {
      if (into.writable && !into.writableNeedDrain) into.write(': keep-alive\n\n')
      return undefined
    },
    end(how) {
      if (how === 'replaced' || how === 'shutdown') into.write('event: closing\ndata: {}\n\n')
      into.end()
    },
  }
}

/** A frame in the wire format; line breaks cannot occur in JSON text, and are taken out of the id and the name. */
export function encodeFrame({ id, event, data }: Frame): EncodedFrame {
  const line = (name: string, value: string) => `${name}: ${value.replace(/[\r\n\0]/g, ' ')}\n`
  const head = (id === undefined ? '' : line('id', id)) + (event === undefined ? '' : line('event', event))
  return Buffer.from(`${head}data: ${frameText(data)}\n\n`)
}

/** What a frame carries as JSON. Throws `frame_too_large`. */
export function frameText(data: unknown): string {
  const text = JSON.stringify(data) ?? 'null'
  if (text.length > FRAME_LIMIT) throw HttpErrors.frame_too_large()
  return text
}

/** Throws `upgrade_required`, its reply saying by header what to ask for. */
export function refuseHandshake(response: ServerResponse): never {
  response.setHeader('upgrade', 'websocket')
  response.setHeader('sec-websocket-version', '13')
  throw HttpErrors.upgrade_required()
}
