import { column, type RowOf, table } from '../../../kernel/kit/table.js'
import { iso, type Migration } from '../../../kernel/plugin.js'
import type { ChangeState, ControlChange } from '../../../schemas/daemon/changes.js'

/** Tables of the plugin. Append only: released migrations never change. */
export const migrations: readonly Migration[] = [
  {
    id: '001-changes',
    sql: `CREATE TABLE changes_change (
      seq INTEGER PRIMARY KEY, id TEXT NOT NULL, at INTEGER NOT NULL, action TEXT NOT NULL, subject TEXT NOT NULL,
      method TEXT NOT NULL, path TEXT NOT NULL, params TEXT NOT NULL, actor_kind TEXT NOT NULL, actor_id TEXT NOT NULL, state TEXT NOT NULL,
      reason TEXT, undone_by TEXT, reads TEXT, before TEXT, after TEXT, back TEXT
    ) STRICT;
    CREATE UNIQUE INDEX changes_change_id ON changes_change (id);`,
  },
]

export const changes = table('changes_change', {
  seq: column.integer().generated(),
  id: column.text(),
  at: column.time(),
  action: column.text(),
  subject: column.text(),
  method: column.text(),
  /** Template of the route. */
  path: column.text(),
  params: column.json<Readonly<Record<string, string>>>(),
  actor_kind: column.text(),
  actor_id: column.text(),
  state: column.text<ChangeState>(),
  reason: column.text().optional(),
  undone_by: column.text().optional(),
  /** Path and query of the read that shows the changed state. */
  reads: column.text().optional(),
  /** JSON of that read before and after the change; absent if nothing existed. */
  before: column.text().optional(),
  after: column.text().optional(),
  /** JSON of the request that restores the former state. */
  back: column.text().optional(),
})
export type ChangeRow = RowOf<typeof changes>

/** A change as its routes show it. */
export function toWire(row: ChangeRow): ControlChange {
  const { id, action, subject, method, path, actor_kind: kind, state, reason, undone_by } = row
  return {
    id,
    at: iso(row.at),
    action,
    subject,
    request: `${method} ${path}`,
    actor: { kind, id: row.actor_id },
    state,
    ...(reason !== undefined && { reason }),
    ...(undone_by !== undefined && { undone_by }),
  }
}
