import { column, type RowOf, table } from '../../../kernel/kit/table.js'
import type { Migration, Reads } from '../../../kernel/plugin.js'

export const migrations: readonly Migration[] = [
  {
    id: '001-secret',
    sql: `CREATE TABLE vault_secret (
      ref TEXT PRIMARY KEY, kind TEXT NOT NULL, version INTEGER NOT NULL, allow_short INTEGER NOT NULL,
      key_id TEXT NOT NULL, sealed TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX vault_secret_key ON vault_secret (key_id, ref);`,
  },
]

const { flag, integer, text, time } = column

/** Stored secrets. `key_id` is the fingerprint of the sealing key; `allow_short` permits a value of less than 8 bytes. */
export const secrets = table('vault_secret', {
  ref: text(),
  kind: text(),
  version: integer(),
  allow_short: flag(),
  key_id: text(),
  sealed: text(),
  created_at: time(),
  updated_at: time(),
})
export type SecretRow = RowOf<typeof secrets>

/** Upper bound for a prefix search: no character of a reference sorts after this one. */
const LAST = '\u{10ffff}'

/** Secrets whose references start with a prefix, sorted by reference. */
export const listRows = (db: Reads, prefix: string): SecretRow[] =>
  secrets.query(db, 'WHERE ref >= ? AND ref < ? ORDER BY ref', [prefix, prefix + LAST])

/** The secret with a reference, and all secrets below it. */
export const rowsOf = (db: Reads, ref: string): SecretRow[] => [...secrets.all(db, { ref }), ...listRows(db, `${ref}/`)]

/** The next secrets after a reference. */
export const rowsAfter = (db: Reads, ref: string, limit: number): SecretRow[] =>
  secrets.query(db, 'WHERE ref > ? ORDER BY ref LIMIT +?', [ref, limit])

/** Up to `limit` secrets sealed with a key. */
export const rowsSealedWith = (db: Reads, keyId: string, limit: number): SecretRow[] =>
  secrets.query(db, 'WHERE key_id = ? LIMIT +?', [keyId, limit])

export const countRows = (db: Reads): number => Number(db.row('SELECT count(*) FROM vault_secret')?.[0])

/** Whether any secret is sealed with one of these keys. */
export const isAnySealedWith = (db: Reads, keyIds: readonly string[]): boolean =>
  keyIds.some(id => db.row('SELECT 1 FROM vault_secret WHERE key_id = ? LIMIT 1', [id]) !== undefined)
