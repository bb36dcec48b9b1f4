import { command } from '../../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../../kernel/kit/text.js'
import type { Db, Reads, SqlValue, Tx } from '../../../../kernel/plugin.js'
import { TaskErrors } from '../api.js'
import { allows, FINAL_RUN, RUN_MOVES, type RunMove } from '../states.js'
import { runKinds, type Totals } from '../totals.js'
import { latestRuns } from './latest.js'
import { type RunRow, runTable, UNCLAIMED } from './run-row.js'

/** The filter of a list of a task's runs. */
export interface RunFilter {
  readonly status?: string | undefined
  readonly sessionId?: string | undefined
  /** The requested network channel. */
  readonly channel?: string | undefined
  readonly limit: number
}

/** Reads runs and applies the transitions of {@link RUN_MOVES}. */
export class RunStore {
  /** Called in the transaction for each lease that ends, with the run before the change. */
  leaseEnded: (t: Tx, run: RunRow) => void = () => {}

  constructor(
    private readonly db: Db,
    private readonly now: () => number,
    private readonly totals: Totals,
  ) {}

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
    const given = conditions.filter((entry): entry is [string, SqlValue] => entry[1] !== undefined)
    return this.db.all<RunRow>(
      `SELECT * FROM tasks_run WHERE ${given.map(([sql]) => sql).join(' AND ')}
       ORDER BY attempt DESC, queued_at DESC, id DESC LIMIT +?`,
      [...given.map(([, value]) => value), limit],
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

  /**
   * Applies a transition. A run that ends or returns to the queue loses its lease.
   * @throws Fault `task_run_conflict` when the table does not allow the transition
   */
  move(t: Tx, run: RunRow, move: RunMove, changes: Partial<RunRow> = {}): RunRow {
    const { to } = RUN_MOVES[move]
    if (!allows(move, run.status)) {
      const text = `run ${run.id} is ${run.status}; this operation requires status ${RUN_MOVES[move].from.join(', ')}`
      throw TaskErrors.task_run_conflict(text, { next: command('task run show', run.id) })
    }
    const ended = FINAL_RUN.has(to) ? { ended_at: this.now(), lease_until: null } : {}
    const waits = to === 'queued' ? UNCLAIMED : {}
    const held = to === 'needs_attention' ? { lease_until: null } : {}
    const started = to === 'running' && run.started_at === null ? { started_at: this.now() } : {}
    if (run.lease_until !== null && (FINAL_RUN.has(to) || to === 'queued' || to === 'needs_attention'))
      this.leaseEnded(t, run)
    const all = { status: to, ...started, ...ended, ...waits, ...held, ...changes }
    runTable.update(t, { id: run.id }, all)
    this.totals.moved(t, runKinds(run.origin_kind, run.place), run.status, all.status)
    return { ...run, ...all }
  }
}
