import type { Db } from '../../../../kernel/plugin.js'
import { isOf, type RunRow } from './run-row.js'

/** Runs that appear in doctor items. */
export class NoteworthyRuns {
  constructor(private readonly db: Pick<Db, 'all'>) {}

  /** Failed runs that are the latest of an existing job; newest first. */
  latestFailures(limit: number): RunRow[] {
    return this.db.all<RunRow>(
      `SELECT r.* FROM automation_run r WHERE r.status = 'failed'
         AND EXISTS (SELECT 1 FROM automation_cursor WHERE job = r.job_id)
         AND NOT EXISTS
           (SELECT 1 FROM automation_run WHERE ${isOf('job_id', 'r.job_id')} AND seq > r.seq AND status <> 'canceled')
       ORDER BY r.seq DESC LIMIT +?`,
      [limit],
    )
  }

  /** Failed runs that are the latest of a trigger, including deleted triggers. */
  latestTriggerFailures(limit: number): RunRow[] {
    return this.db.all<RunRow>(
      `SELECT r.* FROM automation_run r WHERE r.status = 'failed' AND r.trigger_id IS NOT NULL
         AND NOT EXISTS
           (SELECT 1 FROM automation_run WHERE trigger_id = r.trigger_id AND seq > r.seq AND status <> 'canceled')
       ORDER BY r.seq DESC LIMIT +?`,
      [limit],
    )
  }
}
