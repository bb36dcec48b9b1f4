import type { Tx } from '../../../kernel/plugin.js'
import type { Recovery } from '../claims/recovery.js'
import type { TaskCore } from '../core.js'
import { insert } from '../rows.js'
import type { RunRow } from '../runs/run-row.js'
import { whoOf } from '../who.js'
import type { WorkerRow } from './worker-row.js'

/** Between two attempts to start a session for one run: doubled with each that fails. */
const AGAIN_MS = { least: 1000, most: 60_000 }

/** Limits as the configuration says; 0 for none. */
export interface WorkerLimits {
  /** Runs that are held in one workspace at once. */
  readonly activeRuns: () => number
  /** Sessions that are started for one run in vain. */
  readonly failures: () => number
}

/** Is it for somebody who comes for it himself. */
export const isOwned = ({ wants }: RunRow): boolean => wants !== null && JSON.parse(wants).owner !== undefined

/** Decides for which runs a session may be started now. */
export class Admission {
  constructor(
    private readonly core: TaskCore,
    private readonly recovery: Recovery,
    private readonly limits: WorkerLimits,
  ) {}

  /** The worker for a run; undefined when none may be started now. A run that used up its sessions needs attention. */
  async take(wanted: RunRow): Promise<WorkerRow | undefined> {
    return this.core.write(whoOf(this.core.kernel.actor), (t, settle) => {
      const run = this.core.runs.get(wanted.id, t)
      if (run?.status !== 'queued' || run.claimable !== 1 || isOwned(run) || !this.#hasRoom(t, run)) return undefined
      const { failures, last, error, open } = this.#history(t, run.id)
      if (open > 0) return undefined
      const most = this.limits.failures()
      if (most > 0 && failures >= most) {
        this.recovery.escalate(t, whoOf(this.core.kernel.actor), run, `spawn_failure_limit: ${error ?? ''}`, settle)
        return undefined
      }
      const wait = Math.min(AGAIN_MS.most, AGAIN_MS.least * 2 ** (failures - 1))
      const since = this.core.now() - last
      // Less than nothing: the clock was set back.
      if (failures > 0 && since >= 0 && since < wait) return undefined
      const row: WorkerRow = {
        id: this.core.kernel.ids.id('twrk'),
        run_id: run.id,
        task_id: run.task_id,
        place: run.place,
        session_id: null,
        worktree: null,
        commit_id: null,
        started_at: this.core.now(),
        claimed_at: null,
        ended_at: null,
        failed: 0,
        error: null,
      }
      insert(t, 'tasks_worker', row)
      return row
    })
  }

  /** Runs that are held count, and sessions that are about to claim theirs. */
  #hasRoom(t: Tx, { place }: RunRow): boolean {
    const most = this.limits.activeRuns()
    if (most === 0) return true
    const [held] = t.row(
      `SELECT (SELECT count(*) FROM tasks_run WHERE place = ?1 AND status IN ('claimed', 'starting', 'running')
                 AND ifnull(lease_until, 9e15) > ?2)
            + (SELECT count(*) FROM tasks_worker w JOIN tasks_run r ON r.id = w.run_id
               WHERE w.place = ?1 AND w.ended_at IS NULL AND r.status = 'queued')`,
      [place, this.core.now()],
    ) ?? [0]
    return Number(held) < most
  }

  #history(t: Tx, run: string) {
    const rows = t.all<WorkerRow>('SELECT * FROM tasks_worker WHERE run_id = ? ORDER BY started_at', [run])
    const failed = rows.filter(row => row.failed === 1)
    const last = failed.at(-1)
    const open = rows.filter(row => row.ended_at === null).length
    return { failures: failed.length, last: last?.ended_at ?? 0, error: last?.error, open }
  }
}
