import { Feed } from '../../../../kernel/kit/feed.js'
import type { EncodedFrame } from '../../../../kernel/plugin.js'
import type { ConversationChange } from '../../../../schemas/network/agent.js'
import { encodeFrame } from '../../../platform/streams/api.js'
import type { Reading } from '../conversations/reading.js'
import type { K } from '../needs.js'
import { messages } from '../tables.js'

/** Messages and their bytes per page of a reader. */
const PAGE = 100
const PAGE_BYTES = 256 * 1024
/** Cached pages for readers at the same position. */
const PAGES = 8

/** Messages after a position as frames, and the position after them. */
interface Page {
  readonly last: number
  readonly frames: EncodedFrame
}

/** A followed channel, or all channels of a workspace. */
export interface Followed {
  readonly workspaceId: string
  readonly channel: string | undefined
}

/** State shared by the readers of one channel. */
interface Shared {
  readers: number
  readonly news: Feed<never>
  /** Pages by their start position. Messages never change, so a page stays valid. */
  readonly pages: Map<number, Page>
}

/** Streams of stored messages for followers. A reader has a position and no queue, so a slow one costs nothing. */
export class Feeds {
  readonly #shared = new Map<string, Shared>()

  constructor(
    private readonly kernel: K,
    private readonly reading: Reading,
  ) {}

  /** Whether there is any reader. */
  isFollowed(): boolean {
    return this.#shared.size > 0
  }

  /** Called when a message is durable. */
  stored(seq: number): void {
    if (!this.isFollowed()) return
    const message = messages.get(this.kernel.db, { seq })
    if (!message) return
    const { workspaceId, channel } = message
    for (const of of [channel, undefined]) this.#shared.get(keyOf({ workspaceId, channel: of }))?.news.wake()
  }

  /** Wakes followers for something other than a message. */
  wake(followed: Followed): void {
    this.#shared.get(keyOf(followed))?.news.wake()
  }

  /**
   * Messages after a position, then new ones, encoded once for all readers.
   * @param isOver checked before each read: when true, the remaining messages are sent and the stream ends
   */
  async *frames(
    followed: Followed,
    after: number,
    signal: AbortSignal,
    isOver: () => boolean = () => false,
  ): AsyncGenerator<EncodedFrame> {
    const shared = this.#open(followed)
    try {
      for (let at = after; !signal.aborted; ) {
        const next = shared.news.next()
        const over = isOver()
        const page = this.#page(shared, followed, at)
        if (page) {
          at = page.last
          yield page.frames
        } else if (over) return
        else await settled(next, signal)
      }
    } finally {
      this.#close(followed, shared)
    }
  }

  /**
   * Repeats a query on each message until it has a result, the signal aborts or the time is over.
   * @returns undefined without a result
   */
  async until<T>(followed: Followed, ask: () => T | undefined, signal: AbortSignal, ms: number) {
    const shared = this.#open(followed)
    const over = new AbortController()
    const timer = this.kernel.clock.timeout(ms, () => over.abort())
    const ended = AbortSignal.any([signal, over.signal])
    try {
      while (!ended.aborted) {
        const next = shared.news.next()
        const answer = ask()
        if (answer !== undefined) return answer
        await settled(next, ended)
      }
      return undefined
    } finally {
      timer.cancel()
      this.#close(followed, shared)
    }
  }

  #open(followed: Followed): Shared {
    const key = keyOf(followed)
    const shared = this.#shared.get(key) ?? { readers: 0, news: new Feed<never>(0), pages: new Map() }
    shared.readers++
    this.#shared.set(key, shared)
    return shared
  }

  #close(followed: Followed, shared: Shared): void {
    shared.readers--
    if (shared.readers === 0) this.#shared.delete(keyOf(followed))
  }

  #page({ pages }: Shared, { workspaceId, channel }: Followed, after: number): Page | undefined {
    const known = pages.get(after)
    if (known) return known
    const where = channel === undefined ? '' : 'AND channel = ?'
    const sizes = this.kernel.db.all<{ seq: number; size: number }>(
      `SELECT seq, size FROM network_message WHERE workspace_id = ? ${where} AND seq > ? ORDER BY seq LIMIT ${PAGE}`,
      [workspaceId, ...(channel === undefined ? [] : [channel]), after],
    )
    let bytes = 0
    const fits = sizes.filter(({ size }, at) => {
      bytes += size
      return at === 0 || bytes <= PAGE_BYTES
    })
    const last = fits.at(-1)?.seq
    if (last === undefined) return undefined
    const rows = messages.query(
      this.kernel.db,
      `WHERE workspace_id = ? ${where} AND seq > ? AND seq <= ? ORDER BY seq`,
      [workspaceId, ...(channel === undefined ? [] : [channel]), after, last],
    )
    const frames = rows.map(row => {
      const data: ConversationChange = { message: this.reading.wire(row) }
      return encodeFrame({ id: row.id, event: 'message', data })
    })
    const page = { last, frames: Buffer.concat(frames) }
    const [oldest] = pages.keys()
    if (pages.size >= PAGES && oldest !== undefined) pages.delete(oldest)
    pages.set(after, page)
    return page
  }
}

const keyOf = ({ workspaceId, channel }: Followed): string => `${workspaceId}\0${channel ?? ''}`

/** Waits for a promise or an abort. Promise.race would accumulate handlers on the signal's long-lived promise. */
function settled(next: Promise<void>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise(resolve => {
    const done = () => {
      signal.removeEventListener('abort', done)
      resolve()
    }
    signal.addEventListener('abort', done, { once: true })
    void next.then(done)
  })
}
