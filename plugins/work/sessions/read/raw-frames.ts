import type { EncodedFrame, Frame } from '../../../../kernel/plugin.js'
import { encodeFrame, type Source } from '../../../platform/streams/api.js'
import { eventToWire, type StoredSessionEvent } from '../events.js'
import type { SessionLog } from '../journal/session-log.js'
import type { SessionRow } from '../table.js'
import { cursorOf, fence, type StreamRequest, type StreamSource, stoppedFrame } from './stream.js'

type RawFrame = Frame | EncodedFrame

/** The readers of a log that have all of its events. One question whether the disk has the next events serves all of them. */
class Audience {
  static readonly #all = new WeakMap<SessionLog, Audience>()
  readonly #readers = new Set<(upTo: number | undefined) => void>()
  #isServed = false

  static of(log: SessionLog): Audience {
    const audience = Audience.#all.get(log) ?? new Audience()
    Audience.#all.set(log, audience)
    return audience
  }

  /**
   * Resolves when the reader has left: its signal has aborted, the disk has failed, or `send` has returned false.
   * @param send gets the last sequence that the disk has
   */
  join(source: StreamSource, send: (upTo: number) => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#readers.delete(reader)
        source.signal.removeEventListener('abort', leave)
        resolve()
      }
      const reader = (upTo: number | undefined) => {
        try {
          if (upTo === undefined || !send(upTo)) leave()
        } catch (error) {
          reject(error)
          leave()
        }
      }
      source.signal.addEventListener('abort', leave)
      this.#readers.add(reader)
      if (!this.#isServed) void this.#serve(source)
    })
  }

  async #serve({ log, durable }: StreamSource): Promise<void> {
    const { signal } = new AbortController()
    this.#isServed = true
    for (let last = log.last; this.#readers.size > 0; ) {
      await log.changed(last, signal)
      // Events that come while the disk is asked are not part of the answer.
      last = log.last
      const upTo = await durable().then(
        () => last,
        () => undefined,
      )
      for (const reader of this.#readers) reader(upTo)
    }
    this.#isServed = false
  }
}

/** Stored events without changes: `id` is the sequence, `event` the type. Starts at the beginning by default. */
export class RawFrames implements Source<RawFrame>, AsyncIterator<RawFrame> {
  /** The row when the reader came; undefined after the end. */
  #row: SessionRow | undefined
  #next: number
  /** Events read from files; removed ranges are skipped silently. */
  #events: readonly StoredSessionEvent[] = []
  /** Sequence after those events. */
  #after = 0
  /** Type of the last sent event. */
  #type = ''

  constructor(
    private readonly source: StreamSource,
    request: StreamRequest,
  ) {
    const { log } = source
    this.#row = source.row()
    const resume = cursorOf(request)
    // The position of a reader is invalid after the journal was truncated: it starts again.
    const isValid = resume !== undefined && resume <= log.last && this.#row && !fence(request, this.#row, log)
    const wanted = request.limit === undefined ? 1 : log.last - request.limit + 1
    this.#next = isValid ? resume + 1 : Math.max(1, wanted)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<RawFrame, undefined>> {
    const { source } = this
    const { log, signal } = source
    while (this.#row && !signal.aborted) {
      const value = this.#take(log.last)
      if (value) return { value, done: false }
      if (this.#next <= log.last) {
        const { events, next } = await log.page(this.#next)
        this.#events = events
        this.#after = next
        if (events.length === 0) this.#next = next
        continue
      }
      const row = source.row()
      if (!row) break
      if (row.state === 'stopped') {
        this.#row = undefined
        return this.#type === 'session_stopped' ? OVER : { value: await stoppedFrame(log, row), done: false }
      }
      await log.changed(this.#next - 1, signal)
    }
    return this.return()
  }

  async return(): Promise<IteratorResult<RawFrame, undefined>> {
    this.#row = undefined
    return OVER
  }

  async pushTo(take: (frame: RawFrame) => boolean): Promise<void> {
    const { source } = this
    const isOpen = () => (source.row()?.state ?? 'stopped') !== 'stopped'
    if (this.#next <= source.log.last || !isOpen() || source.signal.aborted) return
    await Audience.of(source.log).join(source, upTo => {
      for (let frame = this.#take(upTo); frame; frame = this.#take(upTo)) if (!take(frame)) return false
      return this.#next > upTo && isOpen()
    })
  }

  /** The next frames up to a sequence, if they are in memory. */
  #take(upTo: number): RawFrame | undefined {
    if (this.#events.length === 0) {
      const page = this.#next > upTo ? undefined : this.source.log.recentPage(this.#next, upTo)
      if (!page) return undefined
      this.#events = page.events
      this.#after = page.next
    }
    const [first] = this.#events
    if (!first || !this.#row) return undefined
    const { frames, count } = encodedTogether(this.#events, first, this.#row)
    this.#type = this.#events[count - 1]?.type ?? ''
    this.#events = count === this.#events.length ? NONE : this.#events.slice(count)
    this.#next = this.#events[0]?.sequence ?? this.#after
    return frames
  }
}

const OVER = { value: undefined, done: true } as const
const NONE: readonly StoredSessionEvent[] = []

/** Bytes per chunk, which limits the memory held for a blocked reader. */
const TOGETHER_BYTES = 16 * 1024

/** The frames of consecutive events by their first event, and their number. */
const together = new WeakMap<StoredSessionEvent, { readonly frames: EncodedFrame; readonly count: number }>()

/** Frames of the first events, merged into a chunk. Chunks are shared by all readers that start at the same event. */
function encodedTogether(events: readonly StoredSessionEvent[], first: StoredSessionEvent, row: SessionRow) {
  let group = together.get(first)
  // A chunk made for fewer events is still valid, but not one that spans a range removed since.
  if (!group || events[group.count - 1]?.sequence !== first.sequence + group.count - 1) {
    group = gather(events, row)
    together.set(first, group)
  }
  return group
}

/** The frames of consecutive events for one chunk, at least one. */
function gather(events: readonly StoredSessionEvent[], row: SessionRow) {
  const frames: EncodedFrame[] = []
  let bytes = 0
  for (const [at, event] of events.entries()) {
    const isNext = at === 0 || event.sequence === (events[at - 1]?.sequence ?? 0) + 1
    const frame = encodedOnce(event, row)
    bytes += frame.byteLength
    if (frames.length > 0 && (!isNext || bytes > TOGETHER_BYTES)) break
    frames.push(frame)
  }
  return { frames: frames.length === 1 ? (frames[0] as EncodedFrame) : Buffer.concat(frames), count: frames.length }
}

const encoded = new WeakMap<StoredSessionEvent, EncodedFrame>()

/** The frame of an event, encoded once for all readers. */
function encodedOnce(event: StoredSessionEvent, row: SessionRow): EncodedFrame {
  let frame = encoded.get(event)
  if (!frame) {
    frame = encodeFrame({ id: String(event.sequence), event: event.type, data: eventToWire(event, row) })
    encoded.set(event, frame)
  }
  return frame
}
