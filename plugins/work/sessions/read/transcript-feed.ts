import type { EncodedFrame } from '../../../../kernel/plugin.js'
import type { TranscriptEntry } from '../../../../schemas/sessions.js'
import { encodeFrame } from '../../../platform/streams/api.js'
import type { Cuts } from '../journal/cuts.js'
import type { SessionLog } from '../journal/session-log.js'
import { folderAt, type TranscriptFolder } from './transcript.js'

/** Maximum number of events in one delta. */
const BATCH = 500
/** Deltas kept for slightly later readers, and the size in bytes above which a delta is not kept. */
const KEPT = 16
const KEPT_BYTES = 256 * 1024

/** The state of a reader after a delta; no frame when the delta has nothing visible. */
export interface Delta {
  readonly cursor: number
  readonly frame: EncodedFrame | undefined
}

/** Position of a transcript, part of every delta. */
export type SessionIdentity = Readonly<Record<string, unknown>>

interface Folded extends Delta {
  readonly entries: ReadonlyMap<string, TranscriptEntry>
}

/**
 * The deltas of one transcript. Readers at the same event share a delta, which is folded and encoded once; a slightly late reader
 * gets several deltas as one, and a reader far behind folds for itself until it reaches the others.
 */
export class TranscriptFeed {
  static readonly #feeds = new WeakMap<SessionLog, TranscriptFeed>()
  /** Deltas by their starting cursor, oldest first; the newest may still be in progress. */
  readonly #deltas = new Map<number, Promise<Folded>>()
  /** Cursor of the most advanced readers. */
  #head = -1
  #folder: TranscriptFolder | undefined
  #making: Promise<unknown> | undefined

  readonly cuts: Cuts

  private constructor(private readonly log: SessionLog) {
    this.cuts = log.cuts
  }

  static of(log: SessionLog): TranscriptFeed {
    const known = TranscriptFeed.#feeds.get(log)
    // A rewound conversation invalidates the folded entries.
    const feed = known?.cuts === log.cuts ? known : new TranscriptFeed(log)
    TranscriptFeed.#feeds.set(log, feed)
    return feed
  }

  /** A reader that has everything up to a sequence; `next` is undefined when no events follow yet. */
  reader(cursor: number): { next(identity: SessionIdentity): Promise<Delta | undefined> } {
    let at = cursor
    let own: TranscriptFolder | undefined
    return {
      next: async identity => {
        while (at > this.#head && this.#making) await this.#making.catch(() => {})
        if (at >= this.log.last) return undefined
        let delta: Folded
        if (this.#deltas.has(at) || at >= this.#head) {
          own = undefined
          delta = await this.#together(at, identity)
        } else {
          own ??= await folderAt(this.log, at)
          // Stops at the position of the other readers, so that it can join them.
          delta = await this.#fold(own, at, this.#head, identity)
        }
        at = delta.cursor
        return delta
      },
    }
  }

  /** The delta from a cursor on, merged with all later deltas. */
  async #together(from: number, identity: SessionIdentity): Promise<Folded> {
    const first = await (this.#deltas.get(from) ?? this.#advance(from, identity))
    const entries = new Map(first.entries)
    let { cursor } = first
    for (let more = this.#deltas.get(cursor); more; more = this.#deltas.get(cursor)) {
      const next = await more
      for (const [id, entry] of next.entries) entries.set(id, entry)
      cursor = next.cursor
    }
    return cursor === first.cursor ? first : { cursor, entries, frame: this.#frame(cursor, entries, identity) }
  }

  /** Folds the next delta from the position of the most advanced readers. */
  #advance(from: number, identity: SessionIdentity): Promise<Folded> {
    const making = (async () => {
      if (this.#head !== from || !this.#folder) this.#folder = await folderAt(this.log, from)
      this.#head = from
      const delta = await this.#fold(this.#folder, from, this.log.last, identity)
      this.#head = delta.cursor
      if ((delta.frame?.byteLength ?? 0) > KEPT_BYTES) this.#deltas.delete(from)
      return delta
    })()
    const over = making
      .catch(() => {
        this.#folder = undefined
        this.#deltas.delete(from)
      })
      .finally(() => {
        if (this.#making === over) this.#making = undefined
      })
    this.#making = over
    this.#deltas.set(from, making)
    for (const old of this.#deltas.keys()) {
      if (this.#deltas.size <= KEPT) break
      this.#deltas.delete(old)
    }
    return making
  }

  async #fold(folder: TranscriptFolder, from: number, end: number, identity: SessionIdentity): Promise<Folded> {
    const entries = new Map<string, TranscriptEntry>()
    // The cursor also advances past removed or invisible events.
    const cursor = Math.max(from, Math.min(end, from + BATCH))
    for await (const event of this.log.range(from + 1, cursor)) {
      const entry = folder.take(event)
      if (entry) entries.set(entry.message.id, entry)
    }
    return { cursor, entries, frame: this.#frame(cursor, entries, identity) }
  }

  #frame(
    cursor: number,
    entries: ReadonlyMap<string, TranscriptEntry>,
    identity: SessionIdentity,
  ): EncodedFrame | undefined {
    if (entries.size === 0) return undefined
    const { last } = this.log
    const data = { ...identity, entries: [...entries.values()], cursor, has_more: last > cursor, max_sequence: last }
    return encodeFrame({ id: String(cursor), event: 'transcript_delta', data })
  }
}
