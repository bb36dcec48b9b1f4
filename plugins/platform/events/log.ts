import { AsyncLocalStorage } from 'node:async_hooks'
import * as v from 'valibot'
import { Feed } from '../../../kernel/kit/feed.js'
import { allowance } from '../../../kernel/kit/flood.js'
import {
  type Consumer as Asking,
  type Guard,
  type Hook,
  iso,
  KernelErrors,
  type PluginKernel,
  pluginActor,
  type Report,
  type Scope,
  type Timer,
  type Tx,
} from '../../../kernel/plugin.js'
import {
  type DayCount,
  type Emission,
  type EmitOptions,
  EventErrors,
  type EventFilter,
  type EventSum,
  type EventsApi,
  type StoredEvent,
} from './api.js'
import { Archive, type ArchiveJournal } from './archive.js'
import { Consumer, type Followed, isCursor, nameOf } from './consumer.js'
import { Outbox } from './outbox.js'
import { redacted } from './redacted.js'
import { conditions, DAY_MS, type EventRow, eventOf, fromRow, newRow } from './rows.js'

type Emitted = ReturnType<EventsApi['emit']>

const PAGE = 200
/** Maximum characters of a payload in memory. */
const LARGEST_NEWEST = 8192
const LARGEST_PAYLOAD = 256 * 1024
const HOUR_MS = 3_600_000
const VALUES = ', (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)'
const INSERT = `INSERT INTO kernel_event (id, at, name, payload, actor_kind, actor_id, actor_origin, actor_for, cause, scope,
  subject) VALUES ${VALUES.slice(2)}`
/** By number of events: the store finds a statement by its text, and a new text has to be hashed. */
const INSERTS: string[] = []
/** Enters rows into the indexes. */
const ENTER = 'UPDATE kernel_event SET indexed = 1 WHERE seq > ? AND seq <= ?'
/** Prefix of event ids. */
const EVENT_ID = 'evt'

const LIMITS = {
  /** Rows that stay in the table. */
  keepRows: 100_000,
  /** Rows that are indexed or moved in one transaction; 500 block the loop for about 5 ms. */
  chunkRows: 500,
  /** Maximum age of the next event of a durable cursor. */
  behindMs: 7 * DAY_MS,
  /** Age at which an event leaves the table and the journal. */
  retentionMs: 7 * DAY_MS,
  maxBytes: 2 ** 30,
}
/** Limits of the table and the journal; times in milliseconds. */
export type EventLimits = Readonly<typeof LIMITS>

/**
 * The event log: rows are written in the transaction of the state that they describe, and shown once durable. The table is an
 * outbox with the newest events; older ones are in a journal, and a list crosses that border. Expired events leave both.
 */
export class EventLog {
  readonly limits: EventLimits
  readonly archive: Archive
  readonly outbox: Outbox
  readonly #consumers = new Set<Consumer>()
  readonly #waking = new Set<Consumer>()
  /** Calls consumers outside of the async context of an event's author: work for one request must not be attributed to another. */
  readonly #apart = AsyncLocalStorage.snapshot()
  /** The newest durable events, for consumers that are not behind. */
  readonly #newest = new Feed<EventRow>(PAGE)
  #durable: number
  /** Position up to which all rows are in the indexes. */
  #indexed: number
  #sweepDue: number
  #sweeping: Promise<void> | undefined
  #timer: Timer | undefined
  #closed = false

  constructor(
    readonly kernel: Pick<PluginKernel, 'clock' | 'db' | 'ids' | 'redact'>,
    readonly report: Report,
    journal: ArchiveJournal,
    limits: Partial<EventLimits> = {},
    private readonly written?: Guard<[event: StoredEvent]>,
  ) {
    this.limits = { ...LIMITS, ...limits }
    const newest = () => Number(kernel.db.row("SELECT seq FROM sqlite_sequence WHERE name = 'kernel_event'")?.[0] ?? 0)
    this.#durable = newest()
    const indexed = 'SELECT seq FROM kernel_event NOT INDEXED WHERE indexed = 1 ORDER BY seq DESC LIMIT 1'
    this.#indexed = Number(kernel.db.row(indexed)?.[0] ?? this.first() - 1)
    this.#sweepDue = this.first() + this.limits.keepRows + this.limits.chunkRows
    this.archive = new Archive(journal, newest)
    this.outbox = new Outbox(kernel.db, this.archive, this.limits)
  }

  /** Position of the newest durable event. */
  get last(): number {
    return this.#durable
  }

  /** Position of the oldest event in the table; of the next event when it is empty. */
  first(): number {
    return Number(this.kernel.db.row('SELECT min(seq) FROM kernel_event')?.[0] ?? this.#durable + 1)
  }

  /** The API for one consumer: its name is the default actor, and its scope ends its subscriptions. */
  for({ name, scope }: Pick<Asking, 'name' | 'scope'>): EventsApi {
    const spend = allowance('events', name, { clock: this.kernel.clock, report: this.report }, EventErrors.event_flood)
    const by = { actor: pluginActor(name) }
    const emitAll = (t: Tx, emissions: readonly Emission[]) => {
      spend(emissions.length)
      return this.emitAll(t, emissions, by)
    }
    return {
      emit: (t, ...emission) => emitAll(t, [emission as Emission])[0] as Emitted,
      emitAll,
      on: (what: Followed, fn: Consumer['fn']) => this.#consume(scope, what, fn),
      of: (what: Followed) => this.#hook(what),
      list: filter => this.list(filter),
      latest: filter => this.rows(filter, 0, 1, 'DESC')[0],
      counts: filter => this.counts(filter),
      sums: (...of) => this.sums(...of),
      last: () => this.#durable,
      find: (id, before) => this.find(id, before),
      retire: (owner, cursor) => this.retire(owner, cursor),
      written: this.written as Hook<never>,
    }
  }

  /** See {@link EventsApi.emitAll}. @param by options for which an emission may have others */
  emitAll(t: Tx, emissions: readonly Emission[], by?: EmitOptions): Emitted[] {
    const events = emissions.map(one => this.#eventOf(one, by))
    const params: (string | number | null)[] = []
    for (const { row } of events) params.push(...Object.values(row))
    INSERTS[events.length] ??= `${INSERT}${VALUES.repeat(events.length - 1)} RETURNING seq`
    const rows = this.kernel.db.within(t).rows(INSERTS[events.length] as string, params)
    // Positions ascend in the order of the values; SQLite does not promise that for the rows that it returns.
    const seqs = rows.map(([seq]) => Number(seq)).sort((a, b) => a - b)
    return events.map(({ row, payload }, n) => {
      const [{ id, name }, seq] = [row, seqs[n] as number]
      this.written?.check(t, eventOf(seq, row, payload))
      this.kernel.db.onDurable(t, () => {
        if (seq > this.#durable && row.payload.length <= LARGEST_NEWEST) this.#newest.publish(seq, { seq, ...row })
        this.#durable = Math.max(this.#durable, seq)
        for (const consumer of this.#consumers) if (consumer.wants(seq, name)) this.#wake(consumer)
        if (seq >= this.#sweepDue) void this.sweep()
      })
      return { id, seq }
    })
  }

  #eventOf([type, payload, own]: Emission, by?: EmitOptions) {
    const checked = v.safeParse(type.payload, payload)
    if (!checked.success)
      throw new TypeError(`the payload of ${type.name} does not match its schema: ${checked.issues[0].message}`)
    const safe = redacted(type, checked.output, this.kernel.redact)
    const text = JSON.stringify(safe)
    if (text.length > LARGEST_PAYLOAD)
      throw KernelErrors.payload_too_large(`the payload of ${type.name} has over ${LARGEST_PAYLOAD} characters`)
    const event = { id: this.kernel.ids.id(EVENT_ID), at: this.kernel.clock.now(), name: type.name, payload: text }
    // Every event pays for it, and a spread costs more than the rest.
    return { row: newRow(event, own?.actor ? own : { ...by, ...own }), payload: safe }
  }

  /** See {@link Events.list}. */
  async list(filter: EventFilter & { after?: number; limit?: number }): Promise<StoredEvent[]> {
    const limit = Math.max(0, Math.min(filter.limit ?? PAGE, 1000))
    const found: StoredEvent[] = []
    let after = filter.after ?? 0
    const since = this.kernel.clock.now() - this.limits.retentionMs
    // The border may move while the journal is read.
    for (let first = this.first(); after + 1 < first && found.length < limit; first = this.first()) {
      const wanted = (event: StoredEvent) =>
        // The journal drops whole files, so that its oldest file contains expired events too.
        event.at >= since &&
        event.name === (filter.name ?? event.name) &&
        event.subject === (filter.subject ?? event.subject)
      found.push(...(await this.archive.read(after, first, limit - found.length, wanted)))
      after = first - 1
    }
    return found.concat(this.rows(filter, after, limit - found.length))
  }

  /** See {@link Events.find}. */
  find(id: string, before = Number.POSITIVE_INFINITY): StoredEvent | undefined {
    // Most causes are requests, which are never in the table.
    if (!id.startsWith(`${EVENT_ID}_`)) return undefined
    const sql = 'SELECT * FROM kernel_event WHERE id = ? AND seq <= ? ORDER BY seq DESC LIMIT 1'
    const row = this.kernel.db.get<EventRow>(sql, [id, Math.min(this.#durable, before - 1)])
    return row && fromRow(row)
  }

  /** See {@link Events.counts}. Moved events were counted when they were moved; the rest is counted now. */
  counts(filter: EventFilter & { scope?: string; from: string; to: string }): DayCount[] {
    const days = [filter.from, filter.to].map(day => Date.parse(/^\d{4}-\d\d-\d\d$/.test(day) ? day : '') / DAY_MS)
    if (!days.every(Number.isInteger)) throw KernelErrors.invalid_filter('from and to are days, YYYY-MM-DD')
    const { sql, params } = conditions(filter)
    const counted = `SELECT day, name, sum(n) FROM (SELECT day, name, n FROM kernel_event_day WHERE day BETWEEN ? AND ? AND ${sql}
      UNION ALL SELECT at / ${DAY_MS} AS day, name, 1 FROM kernel_event WHERE seq <= ? AND at / ${DAY_MS} BETWEEN ? AND ?
        AND (indexed = 1 AND ${sql} OR seq > ? AND ${sql})) GROUP BY day, name ORDER BY day, name`
    return this.kernel.db
      .rows(counted, [...days, ...params, this.#durable, ...days, ...params, this.#indexed, ...params])
      .map(([day, name, n]) => ({ day: iso(Number(day) * DAY_MS).slice(0, 10), name: String(name), n: Number(n) }))
  }

  /** See {@link EventsApi.sums}. */
  sums(after: number, slotMs: number, limit: number) {
    const upTo = Math.min(this.#durable, after + limit)
    if (after < upTo && this.first() > after + 1) return undefined
    const sql = `SELECT at / ?3 AS slot, name, scope, count(*) AS n, max(at) AS last FROM kernel_event
      WHERE seq > ?1 AND seq <= ?2 GROUP BY 1, 2, 3`
    return { upTo, sums: this.kernel.db.all<EventSum>(sql, [after, upTo, slotMs]) }
  }

  /** Durable events in the table. */
  rows(filter: EventFilter, after: number, limit: number, order: 'ASC' | 'DESC' = 'ASC'): StoredEvent[] {
    const { sql, params } = conditions(filter)
    const border = Math.max(after, this.#indexed)
    const read = (more: string, from: number, upTo: number) => (most: number) => {
      const page = `SELECT * FROM kernel_event WHERE seq > ? AND seq <= ?${more} AND ${sql} ORDER BY seq ${order} LIMIT +?`
      return this.kernel.db.all<EventRow>(page, [from, upTo, ...params, most])
    }
    // The newer rows are few enough to read all of them.
    const [indexed, newer] = [read(' AND indexed = 1', after, border), read('', border, this.#durable)]
    const [first, second] = order === 'ASC' ? [indexed, newer] : [newer, indexed]
    const rows = first(limit)
    return [...rows, ...second(limit - rows.length)].map(fromRow)
  }

  /** Durable events after a position, from memory; undefined when some are only in the table. */
  newest(name: string | undefined, after: number): StoredEvent[] | undefined {
    const rows = this.#newest.between(after, this.#durable)
    return rows?.flatMap(row => (name === undefined || row.name === name ? fromRow(row) : []))
  }

  saveCursor(owner: string, name: string, seq: number): Promise<unknown> {
    const sql = `INSERT INTO kernel_cursor (owner, name, seq, updated_at) VALUES (?, ?, ?, ?)
      ON CONFLICT (owner, name) DO UPDATE SET seq = excluded.seq, updated_at = excluded.updated_at`
    return this.kernel.db.tx(t => t.run(sql, [owner, name, seq, this.kernel.clock.now()]))
  }

  /** See {@link EventsApi.retire}. An unused cursor would hold back events. */
  async retire(owner: string, name: string): Promise<boolean> {
    const sql = 'DELETE FROM kernel_cursor WHERE owner = ? AND name = ?'
    return (await this.kernel.db.tx(t => t.run(sql, [owner, name]))).changes > 0
  }

  /** Sweeps now and then every hour. */
  start(): void {
    void this.sweep().then(() => {
      if (!this.#closed) this.#timer = this.kernel.clock.timeout(HOUR_MS, () => this.start(), { unref: true })
    })
  }

  /** Indexes new rows, moves excess ones into the journal and drops expired ones; failures are reported. */
  sweep(): Promise<void> {
    this.#sweeping ??= this.#sweep()
      .catch(error => this.report({ owner: 'kernel', hook: 'events outbox', error }))
      .then(reached => {
        this.#sweepDue = (reached ?? this.#durable) + this.limits.chunkRows
        this.#sweeping = undefined
      })
    return this.#sweeping
  }

  /** Ends a sweep between two chunks and closes the journal; consumers end with their scopes. */
  async close(): Promise<void> {
    this.#closed = true
    this.#timer?.cancel()
    await this.#sweeping
    await this.archive.close()
  }

  /** Resolves with the position it reached: events appended during its deletions count towards the next sweep. */
  async #sweep(): Promise<number> {
    await Promise.all([...this.#consumers].map(consumer => consumer.save()))
    let reached = this.#durable
    while (!this.#closed && this.#indexed < reached) {
      const upTo = Math.min(reached, this.#indexed + this.limits.chunkRows)
      await this.kernel.db.tx(t => t.run(ENTER, [this.#indexed, upTo]))
      this.#indexed = upTo
    }
    while (!this.#closed && (await this.outbox.move(reached, this.kernel.clock.now()))) reached = this.#durable
    if (!this.#closed) await this.outbox.drop(this.kernel.clock.now())
    return reached
  }

  /** Wakes a consumer once for all events of a commit. */
  #wake(consumer: Consumer): void {
    if (this.#waking.size === 0) {
      setImmediate(() => {
        const waking = [...this.#waking]
        this.#waking.clear()
        for (const one of waking) void this.#apart(() => one.pump())
      })
    }
    this.#waking.add(consumer)
  }

  #hook(what: Followed): Hook<never> {
    const name = `events.${nameOf(what)}`
    return { name, tap: ({ scope }, fn) => this.#consume(scope, what, fn as Consumer['fn']) }
  }

  #consume(scope: Scope, what: Followed, fn: Consumer['fn']): void {
    const { owner } = scope
    const cursor = isCursor(what) ? what.cursor : undefined
    const type = nameOf(isCursor(what) ? what.type : what)
    let start = this.#durable
    if (cursor !== undefined) {
      if ([...this.#consumers].some(other => other.scope.owner === owner && other.cursor === cursor))
        throw new TypeError(`the cursor ${cursor} of ${owner} already has a consumer`)
      const row = this.kernel.db.row('SELECT seq FROM kernel_cursor WHERE owner = ? AND name = ?', [owner, cursor])
      // Transactions are durable in order: any later event is on disk together with the new cursor.
      if (!row) void this.saveCursor(owner, cursor, start).catch(() => {})
      start = Number(row?.[0] ?? start)
    }
    const atOnce = (isCursor(what) && what.atOnce) || 1
    const consumer = new Consumer(this, scope, cursor, type, atOnce, fn, start)
    this.#consumers.add(consumer)
    scope.defer(`events ${cursor ?? type}`, () => {
      this.#consumers.delete(consumer)
      return consumer.save()
    })
    void consumer.pump()
  }
}
