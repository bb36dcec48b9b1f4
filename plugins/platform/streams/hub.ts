import type { Writable } from 'node:stream'
import type { StreamOf } from '../../../kernel/platform.js'
import { type Clock, type Door, KernelErrors } from '../../../kernel/plugin.js'
import type { Ending, Source, Wire } from './api.js'
import { StreamErrors } from './errors.js'

const BEAT_MS = 15_000

/**
 * Streams over any wire. The next frame is requested when the reader's socket has taken the last one, so backpressure reaches the
 * source.
 */
export class StreamHub {
  readonly #open = new Map<(how: Ending) => void, StreamOf>()
  readonly #places: Readonly<Record<Door, Set<unknown>>> = { socket: new Set(), tcp: new Set(), inject: new Set() }

  constructor(
    private readonly clock: Clock,
    private readonly durable: () => Promise<void>,
  ) {}

  /**
   * Reserves a place for a stream in advance; the returned function releases it. Throws `too_many_streams`.
   * @param most streams of one door, so that a flood at one door leaves the others their places
   */
  enter(door: Door, most: number): () => void {
    const places = this.#places[door]
    if (places.size >= most) throw StreamErrors.too_many_streams()
    const slot = {}
    places.add(slot)
    return () => places.delete(slot)
  }

  /** Open streams by owner. */
  counts(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {}
    for (const { owner } of this.#open.values()) counts[owner] = (counts[owner] ?? 0) + 1
    return counts
  }

  /**
   * Sends frames until the source ends or throws, or the reader or the owner leaves; `failed` makes the last frame of a fault and
   * does not throw. Never rejects, and settles as soon as the stream has ended, even if the source is still busy.
   */
  async serve<F>(key: StreamOf, wire: Wire<F>, source: Source<F>, failed: (error: unknown) => F): Promise<void> {
    let over = 'no' as 'no' | Ending
    let end: () => void = () => {}
    // Not Promise.race: a long-lived promise keeps a reaction for each call, and a stream has many.
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
    const beat = () => {
      const how = wire.beat()
      if (how) stop(how)
      timer = this.clock.timeout(BEAT_MS, beat)
    }
    let timer = this.clock.timeout(BEAT_MS, beat)
    const iterator = source[Symbol.asyncIterator]()
    const durably = async () => {
      const next = await iterator.next()
      if (!next.done) await this.durable()
      return next
    }
    const send = (frame: F) => {
      if (over === 'no') wire.send(frame)
      return over === 'no' && !wire.into.writableNeedDrain
    }
    try {
      while (over === 'no') {
        const next = await unlessOver(durably())
        if (!next || next.done) break
        // A frame after the end would be lost: the reader already requests the frames after its last one.
        if (!send(next.value)) await unlessOver(drained(wire.into))
        else if (source.pushTo) await unlessOver(source.pushTo(send))
      }
    } catch (error) {
      // An error of the source after the end is a consequence of the abort, not a failure.
      if (over === 'no') wire.send(failed(error))
      stop('failed')
    }
    timer.cancel()
    this.#open.delete(stop)
    // Not awaited: a source that waits for its next frame returns only when its signal aborts.
    void Promise.resolve(iterator.return?.()).catch(() => {})
    if (over === 'slow') wire.send(failed(StreamErrors.slow_consumer()))
    if (over === 'dismissed')
      wire.send(failed(KernelErrors.identity_required('the token that opened this stream is no longer valid')))
    wire.end(over === 'no' ? 'done' : over)
  }

  /** Ends matching streams; readers may reconnect and resume. */
  end(how: Ending, isOne: (key: StreamOf) => boolean = () => true): void {
    for (const [stop, key] of [...this.#open]) if (isOne(key)) stop(how)
  }
}

const drained = (into: Writable) => new Promise<void>(resolve => into.once('drain', resolve))
