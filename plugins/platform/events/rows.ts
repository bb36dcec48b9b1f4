import { matching } from '../../../kernel/kit/table.js'
import { type Migration, pluginActor } from '../../../kernel/plugin.js'
import type { EmitOptions, StoredEvent } from './api.js'

export const eventMigrations: readonly Migration[] = [
  {
    id: '001-event',
    sql: `CREATE TABLE kernel_event (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, at INTEGER NOT NULL, name TEXT NOT NULL,
        actor_kind TEXT NOT NULL, actor_id TEXT NOT NULL, cause TEXT, scope TEXT, subject TEXT, payload TEXT NOT NULL
      ) STRICT;
      CREATE INDEX kernel_event_subject ON kernel_event (subject, seq);
      CREATE INDEX kernel_event_name ON kernel_event (name, seq);`,
  },
  {
    id: '002-outbox',
    sql: `CREATE TABLE kernel_event_day (
        day INTEGER NOT NULL, name TEXT NOT NULL, scope TEXT NOT NULL, subject TEXT NOT NULL, n INTEGER NOT NULL,
        PRIMARY KEY (day, name, scope, subject)
      ) STRICT;
      CREATE TABLE kernel_cursor (
        owner TEXT NOT NULL, name TEXT NOT NULL, seq INTEGER NOT NULL, updated_at INTEGER NOT NULL,
        PRIMARY KEY (owner, name)
      ) STRICT;`,
  },
  // Ids without a leading number: the previous version takes these migrations for a drop-in's and continues, since a further column
  // does not affect it.
  { id: 'actor-origin', sql: 'ALTER TABLE kernel_event ADD COLUMN actor_origin TEXT' },
  { id: 'actor-for', sql: 'ALTER TABLE kernel_event ADD COLUMN actor_for TEXT' },
  {
    // To enter an event into two indexes took half of its time. Rows now enter them many at once; see EventLog.sweep.
    id: 'indexed-later',
    sql: `DROP INDEX kernel_event_subject; DROP INDEX kernel_event_name; ALTER TABLE kernel_event ADD COLUMN indexed INTEGER;
      CREATE INDEX kernel_event_of_subject ON kernel_event (subject, seq) WHERE indexed = 1;
      CREATE INDEX kernel_event_of_name ON kernel_event (name, seq) WHERE indexed = 1;`,
  },
]

export const DAY_MS = 86_400_000

export type EventRow = Pick<StoredEvent, 'seq' | 'id' | 'at' | 'name'> &
  Record<'actor_kind' | 'actor_id' | 'payload', string> &
  Record<'actor_origin' | 'actor_for' | 'cause' | 'scope' | 'subject', string | null>

/** The stored columns of an event, without its position. */
export function newRow(
  event: Pick<EventRow, 'id' | 'at' | 'name' | 'payload'>,
  options: EmitOptions,
): Omit<EventRow, 'seq'> {
  const { kind, id, cause, origin, onBehalfOf } = options.actor ?? pluginActor('kernel')
  // Every member is listed, because a spread would cost more than the rest of this call, which each change of a record
  // makes.
  return {
    id: event.id,
    at: event.at,
    name: event.name,
    payload: event.payload,
    actor_kind: kind,
    actor_id: id,
    // An actor without an origin is a plugin.
    actor_origin: origin ?? (kind === 'extension' ? 'extension' : 'daemon'),
    actor_for: onBehalfOf ? `${onBehalfOf.kind}/${onBehalfOf.id}` : null,
    cause: options.cause ?? cause ?? null,
    scope: options.scope ?? null,
    subject: options.subject ?? null,
  }
}

export const fromRow = (row: EventRow): StoredEvent => eventOf(row.seq, row, JSON.parse(row.payload))

/** The event at a position, from its stored columns. */
export function eventOf(seq: number, row: Omit<EventRow, 'seq'>, payload: unknown): StoredEvent {
  const { actor_origin, actor_for, cause, scope, subject } = row
  const actor: Writable<StoredEvent['actor']> = { kind: row.actor_kind, id: row.actor_id }
  if (actor_origin !== null) actor.origin = actor_origin
  if (actor_for !== null) actor.on_behalf_of = actor_for
  const event: Writable<StoredEvent> = { seq, id: row.id, at: row.at, name: row.name, actor, payload }
  if (cause !== null) event.cause = cause
  if (scope !== null) event.scope = scope
  if (subject !== null) event.subject = subject
  return event
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** A filter as SQL, to be appended to another condition. */
export const conditions = ({ subject, name, scope }: { name?: string; scope?: string; subject?: string }) =>
  // The plus makes SQLite use the index of the subject: there may be very many events of one name.
  matching(['subject = ?', subject], [subject === undefined ? 'name = ?' : '+name = ?', name], ['scope = ?', scope])
