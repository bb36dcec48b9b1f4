import type { EncodedFrame, Frame } from '../../../../kernel/plugin.js'
import { encodeFrame, type Source } from '../../../platform/streams/api.js'
import { eventToWire, type StoredSessionEvent } from '../events.js'
import type { SessionLog } from '../journal/session-log.js'
import type { SessionRow } from '../table.js'
import { cursorOf, fence, type StreamRequest, type StreamSource, stoppedFrame } from './stream.js'

type RawFrame = Frame | EncodedFrame

/** Readers of a log that were woken together. */
const woken = new WeakMap<SessionLog, ((isDurable: boolean) => void)[]>()

/** Calls `send` once, with whether the disk has all that was committed; one question serves all readers of a log. */
function afterSync({ log, durable }: StreamSource, send: (isDurable: boolean) => void): void {
  const others = woken.get(log)
  if (others) {
    others.push(send)
    return
  }
  const all = [send]
  woken.set(log, all)
  queueMicrotask(() => {
    woken.delete(log)
    const tell = (isDurable: boolean) => all.forEach(one => void one(isDurable))
    durable().then(
      () => tell(true),
      () => tell(false),
    )
  })
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
      const value = this.#take()
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

  pushTo(take: (frame: RawFrame) => boolean): Promise<void> {
    const { source } = this
    return new Promise((resolve, reject) => {
      const wait = () => {
        if (this.#isSteady()) source.log.follow(source.signal, () => afterSync(source, send))
        else resolve()
      }
      const send = (isDurable: boolean) => {
        try {
          for (let takes = isDurable; takes; ) {
            const frame = this.#take()
            if (!frame) return wait()
            takes = take(frame)
          }
          resolve()
        } catch (error) {
          reject(error)
        }
      }
      wait()
    })
  }

  /** The reader has all events, and more may come. */
  #isSteady(): boolean {
    const { log, row, signal } = this.source
    return log.last < this.#next && (row()?.state ?? 'stopped') !== 'stopped' && !signal.aborted
  }

  /** The next frames, if they are in memory. */
  #take(): RawFrame | undefined {
    if (this.#events.length === 0) {
      const page = this.#next > this.source.log.last ? undefined : this.source.log.recentPage(this.#next)
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
