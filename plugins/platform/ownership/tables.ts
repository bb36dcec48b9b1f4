import { column, table } from '../../../kernel/kit/table.js'
import type { Migration, Reads, Tx } from '../../../kernel/plugin.js'

// An id without a leading number, which the previous version ignores.
export const migrations: readonly Migration[] = [
  {
    id: 'tombstone',
    sql: `CREATE TABLE ownership_tombstone (
      seq INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX ownership_tombstone_thing ON ownership_tombstone (kind, id);
    CREATE TABLE ownership_cursor (
      stream TEXT NOT NULL, kind TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (stream, kind)
    ) STRICT;`,
  },
]

const { integer, text, time } = column

/** Ended things, kept until every plugin with rows that belong to them has deleted those rows. */
export const tombstones = table('ownership_tombstone', {
  seq: integer().generated(),
  /** Id of the token of the plugin that owns such things. */
  kind: text(),
  id: text(),
  at: time(),
})

/** The last tombstone of a kind that a plugin has processed. Without a cursor it checks all of its rows. */
export const cursors = table('ownership_cursor', { stream: text(), kind: text(), seq: integer() })

/** Number of the newest tombstone ever written. */
export const last = (reads: Reads): number =>
  Number(reads.row("SELECT seq FROM sqlite_sequence WHERE name = 'ownership_tombstone'")?.[0] ?? 0)

/** Drops the tombstones of a kind that every stream has passed. */
export function prune(t: Tx, kind: string): void {
  t.run(
    `DELETE FROM ownership_tombstone
     WHERE kind = ? AND seq <= (SELECT ifnull(min(seq), ${Number.MAX_SAFE_INTEGER}) FROM ownership_cursor WHERE kind = ?)`,
    [kind, kind],
  )
}

/** Drops all but the newest tombstones. Cursors that would miss one are deleted, so that their streams check all rows again. */
export function bound(t: Tx, most: number): void {
  const lost = t.row('SELECT seq FROM ownership_tombstone ORDER BY seq DESC LIMIT 1 OFFSET +?', [most])?.[0]
  if (lost === undefined) return
  t.run(
    `DELETE FROM ownership_cursor WHERE EXISTS (SELECT 1 FROM ownership_tombstone AS t
     WHERE t.kind = ownership_cursor.kind AND t.seq > ownership_cursor.seq AND t.seq <= ?)`,
    [lost],
  )
  t.run('DELETE FROM ownership_tombstone WHERE seq <= ?', [lost])
}
