import { matching } from '../../../../kernel/kit/table.js'
import { shown } from '../../../../kernel/kit/text.js'
import type { Db, Reads, Tx } from '../../../../kernel/plugin.js'
import { TaskErrors } from '../api.js'
import { Cache } from '../cache.js'
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
  /** The runs that sessions hold. */
  readonly #leased: Cache<RunRow>
  /** Whether a session holds a run. */
  readonly #holds: Cache<boolean>

  constructor(private readonly db: Db) {
    this.#leased = new Cache(db)
    this.#holds = new Cache(db)
  }

  get(id: string, reads: Reads = this.db): RunRow | undefined {
    return reads.get<RunRow>('SELECT * FROM tasks_run WHERE id = ?', [id])
  }

  /** Throws `task_run_not_found` (404). */
  find(id: string, reads: Reads = this.db): RunRow {
    const row = this.get(id, reads)
    if (!row) throw TaskErrors.task_run_not_found(`task run not found: ${shown(id)}`)
    return row
  }

  /** {@link find} for the request of a lease holder. */
  findLeased(id: string, t: Tx): RunRow {
    return this.#leased.get(id) ?? this.find(id, t)
  }

  /** The run that a session holds. */
  leasedTo(session: string, t: Tx): RunRow | undefined {
    const find = () =>
      t.get<RunRow>('SELECT * FROM tasks_run WHERE session_id = ? AND lease_until IS NOT NULL', [session])
    let run: RunRow | undefined
    const holds = this.#holds.read(session, () => {
      run = find()
      return run !== undefined
    })
    return holds ? (run ?? find()) : undefined
  }

  /** Has to be called for each change of a run that is or was leased. */
  leaseChanged(t: Tx, before: RunRow, after: RunRow): void {
    const [from, to] = [holderOf(before), holderOf(after)]
    if (from === null && to === null) return
    this.#leased.changed(t, after.id, to === null ? undefined : after)
    if (from === to) return
    if (from !== null) this.#holds.changed(t, from, false)
    if (to !== null) this.#holds.changed(t, to, true)
  }

  /** Has to be called for a change of many runs that may be leased. */
  leasesChanged(t: Tx): void {
    this.#leased.changedAll(t)
  }

  /** The runs of a task, newest first. */
  list(task: string, { status, sessionId, channel, limit }: RunFilter): RunRow[] {
    const { sql, params } = matching(
      ['task_id = ?', task],
      ['status = ?', status],
      ['session_id = ?', sessionId],
      ['channel = ?', channel],
    )
    return this.db.all<RunRow>(
      `SELECT * FROM tasks_run WHERE ${sql}
       ORDER BY attempt DESC, queued_at DESC, id DESC LIMIT +?`,
      [...params, limit],
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

/** The session that has the lease of a run. */
const holderOf = ({ lease_until: until, session_id: session }: RunRow): string | null =>
  until === null ? null : session
