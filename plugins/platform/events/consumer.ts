import { pause } from '../../../kernel/kit/backoff.js'
import { type Awaitable, type EventType, type Scope, turn } from '../../../kernel/plugin.js'
import type { DurableCursor, EventFilter, GapEvent, StoredEvent } from './api.js'
import type { EventLog } from './log.js'
import { conditions } from './rows.js'

const PAGE = 200

/** One reader of the log. It holds a position and not a queue, so that a slow one costs nothing and delays only itself. */
export class Consumer {
  readonly #filter: EventFilter
  #running = false
  #saved: number
  #saving: Promise<unknown> | undefined

  /** @param cursor the name of a durable one; @param type the name of an event, or `*` */
  constructor(
    private readonly log: EventLog,
    readonly scope: Scope,
    readonly cursor: string | undefined,
    readonly type: string,
    private readonly atOnce: number,
    readonly fn: (event: StoredEvent) => Awaitable<void>,
    private position: number,
  ) {
    this.#filter = type === '*' ? {} : { name: type }
    this.#saved = position
  }

  /** Notes a new durable event. False if it was the next one and of another type, so that no read is needed. */
  wants(seq: number, name: string): boolean {
    if (this.type === '*' || this.type === name || this.#running || this.position !== seq - 1) return true
    this.position = seq
    return false
  }

  /** Delivers the available events. */
  async pump(): Promise<void> {
    if (this.#running) return
    this.#running = true
    try {
      while (!this.scope.signal.aborted && this.position < this.log.last) await this.#next()
    } catch (error) {
      if (this.scope.signal.aborted) return
      this.#report('events', error)
      // Unreadable old events must not hold up the readable ones.
      this.position = Math.max(this.position, this.log.first() - 1)
    } finally {
      this.#running = false
    }
  }

  /**
   * Stores the position of a durable consumer. A failure is corrected by the next save; until then a restart repeats more events.
   */
  async save(): Promise<void> {
    await this.#saving
    if (this.cursor === undefined || this.#saved === this.position) return
    this.#saved = this.position
    this.#saving = this.log.saveCursor(this.scope.owner, this.cursor, this.position).catch(() => {})
    await this.#saving
  }

  async #next(): Promise<void> {
    const upTo = this.log.last
    const newest = this.log.newest(this.#filter.name, this.position)
    const recent = newest?.[0] && newest[0].at < this.#oldest ? undefined : newest
    // Without a gap, the next events of a durable cursor are in the table.
    const kept = recent || this.cursor === undefined ? undefined : this.log.rows(this.#filter, this.position, PAGE)
    const gap = kept && this.#gap(kept[0])
    if (gap) {
      const { from, to } = gap.payload
      this.#report(`cursor ${this.cursor}`, `over 7 days behind; events ${from} to ${to} are skipped`)
      await this.#handAll([gap])
      return
    }
    const page = recent ?? kept ?? (await this.log.list({ ...this.#filter, after: this.position, limit: PAGE }))
    for (let n = 0; n < page.length; n += this.atOnce) {
      const isGoingOn = this.#handAll(page.slice(n, n + this.atOnce))
      if (isGoingOn !== true && !(await isGoingOn)) return
    }
    if (page.length < PAGE) this.position = Math.max(this.position, upTo)
    else await turn()
  }

  /**
   * Starts these events in order, and advances over those that finish before any unfinished one. False when the consumer has ended.
   * A promise only when one of them takes time: each event has several consumers, and most of those return at once.
   */
  #handAll(events: readonly StoredEvent[]): Awaitable<boolean> {
    const handed = events.map(event => this.#hand(event))
    const advance = (done: readonly unknown[]) => {
      const left = done.indexOf(false)
      const newest = left < 0 ? events.at(-1) : events[left - 1]
      if (newest) {
        this.position = newest.seq
        if (this.cursor !== undefined) void this.save()
      }
      return left < 0
    }
    return handed.every(one => typeof one === 'boolean') ? advance(handed) : Promise.all(handed).then(advance)
  }

  #hand(event: StoredEvent): Awaitable<boolean> {
    if (this.scope.signal.aborted) return false
    try {
      const pending = this.fn(event)
      return typeof pending !== 'object' || this.#finish(event, pending)
    } catch (error) {
      return this.#finish(event, Promise.reject(error))
    }
  }

  /** False when the consumer has ended, or the event has become too old to retry. */
  async #finish(event: StoredEvent, first: Awaitable<void>): Promise<boolean> {
    for (let attempt = 1; !this.scope.signal.aborted; attempt++) {
      try {
        await (attempt === 1 ? first : this.fn(event))
      } catch (error) {
        // Reports the 1st, 2nd, 4th, 8th … failure: one that lasts for days must not crowd out other faults.
        if (Number.isInteger(Math.log2(attempt))) this.#report(`event ${event.name}`, error)
        if (this.cursor !== undefined) {
          await pause(this.log.kernel, attempt, this.scope.signal)
          if (event.at < this.#oldest) return false
          continue
        }
      }
      return true
    }
    return false
  }

  /** Events before this time are no longer delivered. */
  get #oldest(): number {
    return this.log.kernel.clock.now() - this.log.limits.behindMs
  }

  /** The gap to report when the next event is too old or may have left the table. */
  #gap(next: StoredEvent | undefined): GapEvent | undefined {
    const { db, clock, ids } = this.log.kernel
    const from = this.position + 1
    const away = Math.max(0, this.log.first() - from)
    if (away === 0 && !(next && next.at < this.#oldest)) return undefined
    // The clock may be set back: events that are certainly lost are skipped regardless of the times of others.
    const lost = away > 0 ? this.position + away : next?.seq
    const fresh = db.row('SELECT min(seq) FROM kernel_event WHERE seq > ? AND at >= ?', [lost ?? 0, this.#oldest])?.[0]
    const to = Math.min(Number(fresh ?? Number.POSITIVE_INFINITY) - 1, this.log.last)
    const { sql, params } = conditions(this.#filter)
    const there = db.row(`SELECT count(*) FROM kernel_event WHERE seq BETWEEN ? AND ? AND ${sql}`, [
      from,
      to,
      ...params,
    ])
    const payload = { from, to, missed: away + Number(there?.[0]) }
    const actor = { kind: 'daemon', id: 'kernel' } as const
    return { seq: to, id: ids.id('evt'), at: clock.now(), name: 'gap', actor, payload }
  }

  #report(hook: string, error: unknown): void {
    this.log.report({ owner: this.scope.owner, hook, error })
  }
}

/** The subject of a consumer: events of a type, all of them, or either from a durable cursor. */
// biome-ignore lint/suspicious/noExplicitAny: what is handed over is checked where it is emitted
export type Followed = EventType<any> | '*' | DurableCursor<any>

// biome-ignore lint/suspicious/noExplicitAny: as above
export const isCursor = (what: Followed): what is DurableCursor<any> => typeof what === 'object' && 'cursor' in what

export const nameOf = (what: Followed): string => (what === '*' ? what : isCursor(what) ? what.cursor : what.name)
