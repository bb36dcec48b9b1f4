import type { Tx } from '../../../../kernel/plugin.js'
import type { TaskCore } from '../core.js'
import type { RunRow } from '../runs/run-row.js'
import { escalate } from '../tasks/attention.js'
import { whoOf } from '../who.js'
import { type WorkerRow, workerTable } from './worker-row.js'

/** Exponential back-off between two sessions for one run, in milliseconds. */
const AGAIN_MS = { least: 1000, most: 60_000 }

const NO_COORDINATORS =
  'coordinator_off: roles.coordinator.enabled is false, so no coordinator is started; turn it on, and recover the task'

/** Configured limits; 0: no limit. */
export interface WorkerLimits {
  /** Active runs per workspace. */
  readonly activeRuns: () => number
  /** Failed sessions per run. */
  readonly failures: () => number
  /** Sessions of coordinators per workspace. */
  readonly coordinators: () => number
  /** Whether coordinators are started at all. */
  readonly startsCoordinators: () => boolean
}

/** Whether the run is reserved for an owner, who has to claim it. */
export const isOwned = ({ wants }: RunRow): boolean => wants !== null && JSON.parse(wants).owner !== undefined

/** Decides whether a session may be started for a run. */
export class Admission {
  constructor(
    private readonly core: TaskCore,
    private readonly limits: WorkerLimits,
  ) {}

  /** Reserves a worker for a run; undefined when none may be started now. A run that exceeds the failure limit needs attention. */
  async take(wanted: RunRow): Promise<WorkerRow | undefined> {
    return this.core.write(whoOf(this.core.kernel.actor), (t, settle) => {
      const run = this.core.runs.get(wanted.id, t)
      if (run?.status !== 'queued' || run.claimable !== 1 || isOwned(run) || !this.#hasRoom(t, run)) return undefined
      const { failures, last, error, open } = this.#history(t, run.id)
      if (open > 0) return undefined
      if (run.kind === 'coordinator' && !this.limits.startsCoordinators()) {
        const who = whoOf(this.core.kernel.actor)
        escalate(this.core, t, who, run, NO_COORDINATORS, settle)
        return undefined
      }
      const most = this.limits.failures()
      if (most > 0 && failures >= most) {
        escalate(
          this.core,
          t,
          whoOf(this.core.kernel.actor),
          run,
          `spawn_failure_limit: ${failures} sessions failed, the last with: ${error ?? 'unknown error'}`,
          settle,
        )
        return undefined
      }
      const wait = Math.min(AGAIN_MS.most, AGAIN_MS.least * 2 ** (failures - 1))
      const since = this.core.now() - last
      // A negative time means that the clock was set back.
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
      workerTable.insert(t, row)
      return row
    })
  }

  /** Counts active runs, and sessions that have not claimed their run yet. */
  #hasRoom(t: Tx, run: RunRow): boolean {
    return this.#hasPlace(t, run) && (run.kind !== 'coordinator' || this.#hasRoomToLead(t, run))
  }

  #hasRoomToLead(t: Tx, { place: workspaceId }: RunRow): boolean {
    const most = this.limits.coordinators()
    if (most === 0) return true
    const [held] = t.row(
      `SELECT count(*) FROM tasks_worker w JOIN tasks_run r ON r.id = w.run_id
         WHERE w.place = ? AND w.ended_at IS NULL AND r.kind = 'coordinator'`,
      [workspaceId],
    ) ?? [0]
    return Number(held) < most
  }

  #hasPlace(t: Tx, { place: workspaceId }: RunRow): boolean {
    const most = this.limits.activeRuns()
    if (most === 0) return true
    const [held] = t.row(
      `SELECT (SELECT count(*) FROM tasks_run WHERE place = ?1 AND status IN ('claimed', 'starting', 'running')
                 AND ifnull(lease_until, 9e15) > ?2)
            + (SELECT count(*) FROM tasks_worker w JOIN tasks_run r ON r.id = w.run_id
               WHERE w.place = ?1 AND w.ended_at IS NULL AND r.status = 'queued')`,
      [workspaceId, this.core.now()],
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
