import type { Migration, SqlValue } from '../../kernel/plugin.js'
import type { StoredEvent } from './api.js'

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
]

export const DAY_MS = 86_400_000

export type EventRow = Pick<StoredEvent, 'seq' | 'id' | 'at' | 'name'> &
  Record<'actor_kind' | 'actor_id' | 'payload', string> &
  Record<'cause' | 'scope' | 'subject', string | null>

export function fromRow({ actor_kind, actor_id, cause, scope, subject, payload, ...head }: EventRow): StoredEvent {
  return {
    ...head,
    actor: { kind: actor_kind, id: actor_id },
    ...(cause === null ? {} : { cause }),
    ...(scope === null ? {} : { scope }),
    ...(subject === null ? {} : { subject }),
    payload: JSON.parse(payload),
  }
}

/** A filter as SQL that follows another condition. */
export function conditions(filter: { name?: string; scope?: string; subject?: string }): {
  sql: string
  params: SqlValue[]
} {
  const { subject, name, scope } = filter
  // The plus keeps the index of the subject in use: of one name there may be very many.
  const parts = Object.entries({ subject, [subject === undefined ? 'name' : '+name']: name, scope }).filter(
    (part): part is [string, string] => part[1] !== undefined,
  )
  return { sql: parts.map(([column]) => ` AND ${column} = ?`).join(''), params: parts.map(([, value]) => value) }
}
