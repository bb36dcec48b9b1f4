import * as v from 'valibot'
import type { Awaitable } from '../awaitable.js'
import type { Clock } from '../clock.js'
import { KernelErrors } from '../errors.js'
import type { Report } from '../hooks/index.js'
import type { Ids } from '../ids.js'
import type { Scope } from '../scope.js'
import type { Db, Migration, Tx } from '../store/index.js'
import type { EmitOptions, Events, EventType, StoredEvent } from './index.js'

const PAGE = 200

interface Consumer {
  readonly owner: string
  readonly name: string
  readonly fn: (event: StoredEvent) => Awaitable<void>
  cursor: number
  running: boolean
  ended: boolean
}

/** The event log over the catalog: rows written in the transaction of the state they tell of, shown once durable. */
export class EventLog {
  static readonly migrations: readonly Migration[] = [
    {
      id: '001-event',
      sql: `CREATE TABLE kernel_event (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, at INTEGER NOT NULL, name TEXT NOT NULL,
        actor_kind TEXT NOT NULL, actor_id TEXT NOT NULL, cause TEXT, scope TEXT, subject TEXT, payload TEXT NOT NULL
      ) STRICT;
      CREATE INDEX kernel_event_subject ON kernel_event (subject, seq);
      CREATE INDEX kernel_event_name ON kernel_event (name, seq);`,
    },
  ]

  readonly #consumers = new Set<Consumer>()
  #durable: number

  constructor(
    private readonly db: Db,
    private readonly clock: Clock,
    private readonly ids: Ids,
    private readonly report: Report,
  ) {
    this.#durable = db.get<{ seq: number | null }>('SELECT max(seq) AS seq FROM kernel_event')?.seq ?? 0
  }

  /** The log as the plugin `owner` sees it: its name is the default actor, its scope ends its consumers. */
  bind(owner: string, scope: Scope): Events {
    return {
      emit: (t, type, payload, options) =>
        this.emit(t, type, payload, { actor: { kind: 'daemon', id: owner }, ...options }),
      on: (type, fn) => {
        const consumer: Consumer = {
          owner,
          name: type === '*' ? '*' : type.name,
          fn: fn as Consumer['fn'],
          cursor: this.#durable,
          running: false,
          ended: false,
        }
        this.#consumers.add(consumer)
        scope.defer(`events ${consumer.name}`, () => {
          consumer.ended = true
          this.#consumers.delete(consumer)
        })
      },
      list: filter => this.list(filter),
      last: () => this.#durable,
    }
  }

  emit<P>(t: Tx, type: EventType<P>, payload: P, options: EmitOptions = {}): { id: string; seq: number } {
    const checked = v.safeParse(type.payload, payload)
    if (!checked.success)
      throw new TypeError(`the payload of ${type.name} does not match its schema: ${checked.issues[0].message}`)
    const id = this.ids.id('evt')
    const actor = options.actor ?? { kind: 'daemon', id: 'kernel' }
    const row = this.db.within(t).get<{ seq: number }>(
      `INSERT INTO kernel_event (id, at, name, actor_kind, actor_id, cause, scope, subject, payload)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq`,
      [
        id,
        this.clock.now(),
        type.name,
        actor.kind,
        actor.id,
        options.cause ?? actor.cause ?? null,
        options.scope ?? null,
        options.subject ?? null,
        JSON.stringify(checked.output),
      ],
    )
    if (!row) throw KernelErrors.internal(`the event ${type.name} got no position`)
    const { seq } = row
    this.db.onDurable(t, () => {
      this.#durable = Math.max(this.#durable, seq)
      for (const consumer of this.#consumers) void this.#pump(consumer)
    })
    return { id, seq }
  }

  list(filter: { after?: number; name?: string; subject?: string; limit?: number }): StoredEvent[] {
    const where = ['seq > ?', 'seq <= ?']
    const params: (string | number)[] = [filter.after ?? 0, this.#durable]
    for (const column of ['name', 'subject'] as const) {
      const value = filter[column]
      if (value === undefined) continue
      where.push(`${column} = ?`)
      params.push(value)
    }
    params.push(Math.min(filter.limit ?? PAGE, 1000))
    return this.db
      .all<EventRow>(`SELECT * FROM kernel_event WHERE ${where.join(' AND ')} ORDER BY seq LIMIT ?`, params)
      .map(fromRow)
  }

  /** One event at a time from the log itself, so that a slow consumer holds a position and not a queue. */
  async #pump(consumer: Consumer): Promise<void> {
    if (consumer.running) return
    consumer.running = true
    try {
      while (!consumer.ended && consumer.cursor < this.#durable) {
        const upTo = this.#durable
        const page = this.list({
          after: consumer.cursor,
          limit: PAGE,
          ...(consumer.name === '*' ? {} : { name: consumer.name }),
        })
        for (const event of page) {
          if (consumer.ended) return
          try {
            await consumer.fn(event)
          } catch (error) {
            this.report({ owner: consumer.owner, hook: `event ${event.name}`, error })
          }
          consumer.cursor = event.seq
        }
        if (page.length < PAGE) consumer.cursor = Math.max(consumer.cursor, upTo)
      }
    } finally {
      consumer.running = false
    }
  }
}

type EventRow = {
  seq: number
  id: string
  at: number
  name: string
  actor_kind: string
  actor_id: string
  cause: string | null
  scope: string | null
  subject: string | null
  payload: string
}

function fromRow(row: EventRow): StoredEvent {
  return {
    seq: row.seq,
    id: row.id,
    at: row.at,
    name: row.name,
    actor: { kind: row.actor_kind, id: row.actor_id },
    ...(row.cause === null ? {} : { cause: row.cause }),
    ...(row.scope === null ? {} : { scope: row.scope }),
    ...(row.subject === null ? {} : { subject: row.subject }),
    payload: JSON.parse(row.payload),
  }
}
