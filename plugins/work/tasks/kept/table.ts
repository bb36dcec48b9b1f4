import { column, table } from '../../../../kernel/kit/table.js'
import type { Reads } from '../../../../kernel/plugin.js'

/** Tasks whose runs no session of this daemon may claim. */
export const KEPT_TABLE = `
CREATE TABLE tasks_kept (
  task_id TEXT PRIMARY KEY NOT NULL, run_id TEXT NOT NULL, keeper TEXT NOT NULL, kept_at INTEGER NOT NULL
) STRICT;`

const { text, time } = column
export const keptTable = table('tasks_kept', { task_id: text(), run_id: text(), keeper: text(), kept_at: time() })

/** The requirement on claimants that keeps sessions from the runs of a kept task. */
export const keeperOf = (
  reads: Reads,
  task: string,
): { readonly owner?: { readonly kind: string; readonly ref: string } } => {
  const [keeper] = reads.row('SELECT keeper FROM tasks_kept WHERE task_id = ?', [task]) ?? []
  return keeper === undefined ? {} : { owner: { kind: 'network_peer', ref: `${keeper}` } }
}
