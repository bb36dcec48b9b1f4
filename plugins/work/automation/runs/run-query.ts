import { matching } from '../../../../kernel/kit/table.js'
import type { Reads } from '../../../../kernel/plugin.js'
import type { RunStatus } from '../api.js'
import { isOf, type RunRow, runs } from './run-row.js'

/** The filter of a run list. */
export interface RunFilter {
  readonly jobId?: string | undefined
  readonly triggerId?: string | undefined
  readonly status?: RunStatus | undefined
  /** Epoch milliseconds, both inclusive. */
  readonly since?: number | undefined
  readonly until?: number | undefined
  /** Only runs of this workspace and global runs. */
  readonly workspace?: string | undefined
  /** Only runs claimed before the run with this number. */
  readonly beforeSeq?: number | undefined
  readonly limit: number
}

/** Runs in one database, newest first. */
export function queryRuns(reads: Reads, filter: RunFilter): RunRow[] {
  const { jobId, triggerId, status, since, until, workspace, beforeSeq, limit } = filter
  const { sql, params } = matching(
    [isOf('job_id'), jobId],
    ['trigger_id = ?', triggerId],
    // Failed runs have a partial index, which SQLite only uses when the status is a literal.
    [status === 'failed' ? "status = 'failed' AND ? IS NOT NULL" : 'status = ?', status],
    ['started_at >= ?', since],
    ['started_at <= ?', until],
    ['(scope IS NULL OR scope = ?)', workspace],
    ['seq < ?', beforeSeq],
  )
  return runs.query(reads, `WHERE ${sql} ORDER BY seq DESC LIMIT +?`, [...params, limit])
}
