import { shown } from '../../../../kernel/kit/text.js'
import type { Db, Reads, SqlValue } from '../../../../kernel/plugin.js'
import { TaskErrors } from '../api.js'
import { latestRuns } from './latest.js'
import type { RunRow } from './run-row.js'

/** The filter of a list of a task's runs. */
export interface RunFilter {
  readonly status?: string | undefined
  readonly sessionId?: string | undefined
  /** The requested network channel. */
  readonly channel?: string | undefined
  readonly limit: number
}

/** Reads runs, also inside of transactions. */
export class RunStore {
  constructor(private readonly db: Db) {}

  get(id: string, reads: Reads = this.db): RunRow | undefined {
    return reads.get<RunRow>('SELECT * FROM tasks_run WHERE id = ?', [id])
  }

  /** Throws `task_run_not_found` (404). */
  find(id: string, reads: Reads = this.db): RunRow {
    const row = this.get(id, reads)
    if (!row) throw TaskErrors.task_run_not_found(`task run not found: ${shown(id)}`)
    return row
  }

  /** The runs of a task, newest first. */
  list(task: string, { status, sessionId, channel, limit }: RunFilter): RunRow[] {
    const conditions: [string, SqlValue | undefined][] = [
      ['task_id = ?', task],
      ['status = ?', status],
      ['session_id = ?', sessionId],
      ['channel = ?', channel],
    ]
    const filters = conditions.filter((entry): entry is [string, SqlValue] => entry[1] !== undefined)
    return this.db.all<RunRow>(
      `SELECT * FROM tasks_run WHERE ${filters.map(([sql]) => sql).join(' AND ')}
       ORDER BY attempt DESC, queued_at DESC, id DESC LIMIT +?`,
      [...filters.map(([, value]) => value), limit],
    )
  }

  /** The open runs of a task, newest first. */
  open(task: string, reads: Reads = this.db): RunRow[] {
    return reads.all<RunRow>(
      `SELECT * FROM tasks_run WHERE task_id = ? AND status NOT IN ('completed', 'failed', 'canceled')
       ORDER BY attempt DESC, queued_at DESC, id DESC`,
      [task],
    )
  }

  /** The active runs that a session holds or is bound to. */
  ofSession(session: string, reads: Reads = this.db): RunRow[] {
    return reads.all<RunRow>(
      `SELECT * FROM tasks_run WHERE session_id = ? AND status IN ('claimed', 'starting', 'running') ORDER BY id`,
      [session],
    )
  }

  /**
   * All runs of a task, in the reverse order in which they were queued. That is the order of the rows: parts of fan-outs count
   * their own attempts, and times are equal or go back when the clock does.
   */
  all(task: string, reads: Reads = this.db): RunRow[] {
    return reads.all<RunRow>('SELECT * FROM tasks_run WHERE task_id = ? ORDER BY rowid DESC', [task])
  }

  /** The latest run of a task or, in a fan-out, the latest run of each part. */
  latest(task: string, reads: Reads = this.db): RunRow[] {
    return latestRuns(this.all(task, reads))
  }

  /** The number of the next attempt: of a part of a fan-out, or of the task. */
  nextAttempt(task: string, { group, index }: { group: string | null; index: number | null }, reads: Reads): number {
    const [highest] =
      (group === null
        ? reads.row('SELECT max(attempt) FROM tasks_run WHERE task_id = ?', [task])
        : reads.row(
            'SELECT max(attempt) FROM tasks_run WHERE task_id = ? AND designation_group_id = ? AND designation_index IS ?',
            [task, group, index],
          )) ?? []
    return Number(highest ?? 0) + 1
  }
}
