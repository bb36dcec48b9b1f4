import type { Clock, Ids, Redact } from '../../../../kernel/plugin.js'
import type { Journal } from '../../../platform/journals/api.js'
import { decodeEvent, encodeEvent, type NewEvent, type StoredSessionEvent, withGaps } from '../events.js'
import { Cuts } from './cuts.js'
import { Digest } from './digest.js'
import { Followers } from './followers.js'
import { GatheredText, type TextHead } from './gathered-text.js'
import type { EventListeners } from './telling.js'

/** Bytes passed to the journal but not yet in its file, above which a producer has to wait. */
const BACKLOG_BYTES = 1024 * 1024
/** Events per read. */
const PAGE = 500
/** The newest events are kept in memory within these limits, so that followers of a session read no files. */
const RECENT_EVENTS = 512
const RECENT_BYTES = 512 * 1024

/** Members that programs read: redaction must not change them, even when a secret equals one of their words. */
const READ_BY_PROGRAMS =
  /^(?:id|kind|type|status|state|code|level|schema|marker|warning|decision|priority|source|stop_reason)$|(?:_id|Id)$/
const isReadByPrograms = (name: string): boolean => READ_BY_PROGRAMS.test(name)

/** Filter for events. */
export interface EventQuery {
  readonly type?: string | undefined
  readonly turnId?: string | undefined
  /** Epoch milliseconds, inclusive. */
  readonly since?: number | undefined
  readonly afterSequence?: number | undefined
  readonly beforeSequence?: number | undefined
  /** The newest events up to this number. */
  readonly limit: number
}

/** Consecutive events, and the position of the next page. */
export interface EventPage {
  readonly events: readonly StoredSessionEvent[]
  readonly next: number
}

interface RecentEvent {
  readonly sequence: number
  readonly payload: Uint8Array
  event?: StoredSessionEvent
}

function decodeRecent(recent: RecentEvent): StoredSessionEvent {
  recent.event ??= decodeEvent(recent.sequence, recent.payload)
  return recent.event
}

/** The events of one session: a journal with typed events, gathered texts and waiting readers. */
export class SessionLog {
  #visible: number
  #backlog = 0
  #bytes = 0
  #telling = false
  #closed = false
  readonly #texts: GatheredText
  readonly #readers = new Followers()
  #digest: Digest | undefined
  /** The newest events without a gap; decoded when they are first read. */
  readonly #recent: RecentEvent[] = []
  #recentBytes = 0
  /** The last page from {@link recentPage}. */
  #page: (EventPage & { readonly from: number }) | undefined

  constructor(
    private readonly journal: Journal,
    private readonly clock: Clock,
    private readonly ids: Ids,
    private readonly redact: Redact,
    private readonly failed: (error: unknown) => void,
    /** The ranges of the journal that are hidden from readers. */
    public cuts = new Cuts(),
    private readonly listeners: EventListeners = {},
  ) {
    this.#visible = journal.last
    const write = (head: TextHead, text: string) => this.#write({ ...head, content: { ...head.content, text } }, false)
    this.#texts = new GatheredText(clock, redact, write, failed)
  }

  /** Reason for which nothing can be appended any more; the intact part stays readable. */
  get damage(): Error | undefined {
    return this.journal.damage
  }

  /** Incremented when the journal was not closed properly: positions of an older generation may be invalid. */
  get generation(): number {
    return this.journal.generation
  }

  /** Sequence of the newest event that readers may see. */
  get last(): number {
    return this.#visible
  }

  /** Sequence of the newest event, including those not yet in the file. */
  get end(): number {
    return this.journal.last
  }

  get first(): number {
    return this.journal.first
  }

  /** Bytes appended through this object. */
  get bytes(): number {
    return this.#bytes
  }

  /** Appends one event after the gathered text; `sync` syncs at once. Returns its sequence. */
  append(event: NewEvent, options: { readonly sync?: boolean } = {}): number {
    this.#texts.end()
    return this.#write(this.#redacted(event), options.sync ?? false)
  }

  /** Appends a chunk of text; consecutive chunks become one event. */
  appendText(type: TextHead['type'], turnId: string, text: string, content: TextHead['content'] = {}): void {
    // A process may send its last output after its session was closed.
    if (!this.#closed) this.#texts.add({ type, turnId, content }, text)
  }

  /** Syncs everything appended so far, except for a trailing text that may be the start of a secret. */
  async sync(): Promise<void> {
    this.#texts.flush()
    await this.journal.sync()
  }

  /** Waits while too much is not yet in the file, so that the disk and not the memory limits a flood. */
  async room(): Promise<void> {
    if (this.#backlog > BACKLOG_BYTES) await this.journal.written()
  }

  /** Resolves when there is an event after that sequence, or when the signal aborts. The signal must not outlive its reader. */
  changed(after: number, signal: AbortSignal): Promise<void> {
    return this.#visible <= after ? this.#readers.next(signal) : Promise.resolve()
  }

  /** Wakes the readers without a new event, because the state of the session changed. */
  wake(): void {
    this.#readers.wake()
  }

  /** Events from a sequence on, ascending. */
  async read(from: number, limit: number): Promise<StoredSessionEvent[]> {
    const start = Math.max(from, this.journal.first, 1)
    const count = Math.min(limit, this.#visible - start + 1)
    if (count <= 0) return []
    const first = this.#recent[0]?.sequence
    if (first !== undefined && start >= first) {
      return this.#recent.slice(start - first, start - first + count).map(decodeRecent)
    }
    const records = await this.journal.read(start, count)
    const events = records.map(record => decodeEvent(record.sequence, record.payload))
    return events.length === count ? events : withGaps(events, start, start + count - 1)
  }

  /** A {@link page} of events in memory: thousands of readers share it. Undefined when it has to be read from files. */
  recentPage(from: number, upTo: number): EventPage | undefined {
    const first = this.#recent[0]?.sequence
    if (first === undefined || from < first || !this.cuts.none) return undefined
    const last = Math.min(upTo, from + PAGE - 1)
    if (this.#page?.from === from && this.#page.next === last + 1) return this.#page
    const events = this.#recent.slice(from - first, last - first + 1).map(decodeRecent)
    this.#page = { from, events, next: last + 1 }
    return this.#page
  }

  /** Events from a sequence on without removed ranges, ascending, and the position of the next page. */
  async page(from: number): Promise<EventPage> {
    const stored = await this.read(from, PAGE)
    const events = stored.filter(({ sequence }) => !this.cuts.has(sequence))
    return { events, next: (stored.at(-1)?.sequence ?? this.#visible) + 1 }
  }

  /** Events from a sequence up to another without removed ranges, ascending, read in pages. */
  async *range(from: number, to = this.#visible): AsyncGenerator<StoredSessionEvent> {
    for await (const event of this.#stored(from, to)) if (!this.cuts.has(event.sequence)) yield event
  }

  /** Events including removed ranges, ascending, read in pages. */
  async *#stored(from: number, to: number): AsyncGenerator<StoredSessionEvent> {
    for (let next = Math.max(from, this.journal.first, 1); next <= to; ) {
      const page = await this.read(next, Math.min(PAGE, to - next + 1))
      if (page.length === 0) return
      yield* page
      next = page.at(-1)!.sequence + 1
    }
  }

  /** All events before a sequence, descending, read in pages. */
  async *backwards(before?: number): AsyncGenerator<StoredSessionEvent> {
    yield* this.#descending(before, sequence => sequence)
  }

  /** All events of one type before a sequence, descending; skips stretches without that type. `column` as for {@link digested}. */
  async *backwardsOf(type: string, column: string | null, before?: number): AsyncGenerator<StoredSessionEvent> {
    const { types } = await this.digested(column)
    const events = this.#descending(before, sequence => types.lastPlace(sequence, type))
    for await (const event of events) if (event.type === type) yield event
  }

  /** The newest `limit` matching events, ascending; `column` as for {@link digested}. */
  async query(query: EventQuery, column: string | null): Promise<StoredSessionEvent[]> {
    const { type, beforeSequence } = query
    const events = type === undefined ? this.backwards(beforeSequence) : this.backwardsOf(type, column, beforeSequence)
    const found: StoredSessionEvent[] = []
    for await (const event of events) {
      if (found.length >= query.limit || event.sequence <= (query.afterSequence ?? 0)) break
      if (query.since !== undefined && event.at < query.since) break
      if (query.turnId !== undefined && event.turnId !== query.turnId) continue
      found.push(event)
    }
    return found.reverse()
  }

  /**
   * The digest of the journal. The first call counts the events after those in the column; later calls return the maintained
   * digest.
   */
  async digested(column: string | null): Promise<Digest> {
    const digest = this.#digest ?? Digest.stored(column, this.journal.last)
    while (!this.#digest) {
      const to = this.#visible
      for await (const event of this.#stored(digest.sequence + 1, to)) digest.add(event.sequence, event)
      digest.sequence = Math.max(digest.sequence, to)
      if (digest.sequence >= this.journal.last) this.#digest ??= digest
      else await this.journal.written()
    }
    return this.#digest
  }

  /** Start of the transcript entry of an event; known for some events of a counted journal only. */
  entryStart(sequence: number): number | undefined {
    return this.cuts.none ? this.#digest?.entries.startOf(sequence) : undefined
  }

  /** Undefined before the first call of {@link digested}. */
  get digest(): Digest | undefined {
    return this.#digest
  }

  async close(): Promise<void> {
    try {
      this.#texts.end()
    } catch (error) {
      this.failed(error)
    }
    this.#closed = true
    this.wake()
    await this.journal.close()
  }

  /** Pages before a sequence. Each page ends where `positionOf` finds a match at or before its end. */
  async *#descending(
    before: number | undefined,
    positionOf: (sequence: number) => number,
  ): AsyncGenerator<StoredSessionEvent> {
    const first = Math.max(this.journal.first, 1)
    let end = positionOf(Math.min(before ?? Number.POSITIVE_INFINITY, this.#visible + 1) - 1)
    while (end >= first) {
      const start = Math.max(first, end - PAGE + 1)
      const page = await this.read(start, end - start + 1)
      yield* page.filter(({ sequence }) => !this.cuts.has(sequence)).reverse()
      end = positionOf(start - 1)
    }
  }

  #redacted(event: NewEvent): NewEvent {
    const { content, failure, stopDetail } = event
    const parts = { content, failure, stopDetail }
    const safe = this.redact.value(parts, isReadByPrograms)
    return safe === parts ? event : { ...event, ...safe }
  }

  #write(event: NewEvent, sync: boolean): number {
    this.listeners.recording?.(event)
    const payload = encodeEvent(event, this.ids.id('evt'), this.clock.now())
    const [sequence] = this.journal.append([payload], { sync })
    this.#digest?.add(sequence!, event)
    this.#remember({ sequence: sequence!, payload })
    this.#backlog += payload.byteLength
    this.#bytes += payload.byteLength
    this.listeners.recorded?.(event, sequence!)
    void this.#tell()
    return sequence!
  }

  #remember(event: RecentEvent): void {
    this.#recent.push(event)
    this.#recentBytes += event.payload.byteLength
    while (this.#recent.length > RECENT_EVENTS || this.#recentBytes > RECENT_BYTES) {
      this.#recentBytes -= this.#recent.shift()!.payload.byteLength
    }
  }

  /** Wakes readers when appended events are in the file, once for all events appended in the meantime. */
  async #tell(): Promise<void> {
    if (this.#telling) return
    this.#telling = true
    try {
      while (this.#visible < this.journal.last) {
        const { last } = this.journal
        const backlog = this.#backlog
        await this.journal.written()
        this.#visible = Math.max(this.#visible, last)
        this.#backlog -= backlog
        this.wake()
      }
    } catch (error) {
      this.failed(error)
    } finally {
      this.#telling = false
    }
  }
}
