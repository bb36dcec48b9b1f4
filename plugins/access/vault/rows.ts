import type { Migration, Reads, Tx } from '../../../kernel/plugin.js'
import type { Bound } from './cipher.js'

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

/** A secret as it is stored. */
export interface SecretRow extends Bound {
  readonly kind: string
  /** 1: its value has fewer than 8 bytes. */
  readonly allow_short: number
  /** Fingerprint of the key that it is sealed with. */
  readonly key_id: string
  readonly sealed: string
  /** Epoch milliseconds. */
  readonly created_at: number
  readonly updated_at: number
}

const COLUMNS = 'ref, kind, version, allow_short, key_id, sealed, created_at, updated_at'
/** The end of what begins with a text: no character of a reference sorts after this one. */
const LAST = '\u{10ffff}'

type Found = SecretRow & Record<string, string | number>

export const findRow = (db: Reads, ref: string): SecretRow | undefined =>
  db.get<Found>(`SELECT ${COLUMNS} FROM vault_secret WHERE ref = ?`, [ref])

/** By reference, those that begin with a text. */
export const listRows = (db: Reads, prefix: string): SecretRow[] =>
  db.all<Found>(`SELECT ${COLUMNS} FROM vault_secret WHERE ref >= ? AND ref < ? ORDER BY ref`, [prefix, prefix + LAST])

/** The one of a reference, and all below it. */
export const rowsOf = (db: Reads, ref: string): SecretRow[] => [
  ...[findRow(db, ref)].filter(row => row !== undefined),
  ...listRows(db, `${ref}/`),
]

/** The next ones behind a reference. */
export const rowsAfter = (db: Reads, ref: string, limit: number): SecretRow[] =>
  db.all<Found>(`SELECT ${COLUMNS} FROM vault_secret WHERE ref > ? ORDER BY ref LIMIT +?`, [ref, limit])

/** Some that are sealed with a key. */
export const rowsSealedWith = (db: Reads, keyId: string, limit: number): SecretRow[] =>
  db.all<Found>(`SELECT ${COLUMNS} FROM vault_secret WHERE key_id = ? LIMIT +?`, [keyId, limit])

export const countRows = (db: Reads): number => Number(db.row('SELECT count(*) FROM vault_secret')?.[0])

/** Whether there is one that a key of these can open. */
export const isAnySealedWith = (db: Reads, keyIds: readonly string[]): boolean =>
  keyIds.some(id => db.row('SELECT 1 FROM vault_secret WHERE key_id = ? LIMIT 1', [id]) !== undefined)

export function putRow(t: Tx, row: SecretRow): void {
  t.run(`INSERT OR REPLACE INTO vault_secret (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, [
    row.ref,
    row.kind,
    row.version,
    row.allow_short,
    row.key_id,
    row.sealed,
    row.created_at,
    row.updated_at,
  ])
}

export const resealRow = (t: Tx, { ref, key_id, sealed }: SecretRow): void =>
  void t.run('UPDATE vault_secret SET key_id = ?, sealed = ? WHERE ref = ?', [key_id, sealed, ref])

export const deleteRow = (t: Tx, ref: string): void => void t.run('DELETE FROM vault_secret WHERE ref = ?', [ref])
