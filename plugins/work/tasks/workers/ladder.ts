import type { TaskCore } from '../core.js'
import type { RunRow } from '../runs/run-row.js'
import { escalate } from '../tasks/attention.js'
import { whoOf } from '../who.js'

/** A run that has been claimable for this many milliseconds is starved. */
const STARVED_MS = 2 * 60_000
/** Milliseconds between two steps of one run. */
const STEP_MS = 60_000
const BATCH = 100
/** Step numbers of the actions. */
const STEPS = { fanOut: 2, spawn: 4, tell: 6, escalate: 10 }

interface Rung {
  readonly step: number
  readonly at: number
}

/**
 * Starvation ladder for unclaimed runs of tasks without a profile: wake all waiting claims again, start a session, emit
 * `task.run_starved`, and finally escalate to needs_attention. While a session is active in the same workspace, which may claim
 * the run next, the ladder does not advance. Runs that a plugin keeps from sessions do not starve.
 */
export class Ladder {
  readonly #rungs = new Map<string, Rung>()

  constructor(private readonly core: TaskCore) {}

  /** When the first waiting run starves, in epoch milliseconds; undefined: none waits. */
  next(): number | undefined {
    const row = this.core.kernel.db.row(
      `SELECT min(queued_at) FROM tasks_run WHERE status = 'queued' AND claimable = 1
         AND profiled = 0 AND task_id NOT IN (SELECT task_id FROM tasks_kept)`,
    )
    return typeof row?.[0] === 'number' ? row[0] + STARVED_MS : undefined
  }

  /** Advances the ladder. Returns the runs for which a session has to be started. */
  async starved(): Promise<RunRow[]> {
    const now = this.core.now()
    const runs = this.core.kernel.db.all<RunRow>(
      `SELECT * FROM tasks_run WHERE status = 'queued' AND claimable = 1 AND queued_at <= ?
         AND profiled = 0 AND task_id NOT IN (SELECT task_id FROM tasks_kept) ORDER BY queued_at, id LIMIT ${BATCH}`,
      [now - STARVED_MS],
    )
    const known = new Set(runs.map(({ id }) => id))
    for (const id of this.#rungs.keys()) if (!known.has(id)) this.#rungs.delete(id)
    const wanted: RunRow[] = []
    for (const run of runs) {
      const before = this.#rungs.get(run.id)
      const isDue = (before === undefined || now - before.at >= STEP_MS) && !this.#isBusy(run.place)
      const step = (before?.step ?? 0) + Number(isDue)
      if (isDue) {
        this.#rungs.set(run.id, { step, at: now })
        // Every new run wakes the waiting claims; this repeats it in case the first signal was lost.
        if (step === STEPS.fanOut) this.core.tellClaimable()
        await this.#take(run, step)
      }
      if (step >= STEPS.spawn && step < STEPS.escalate) wanted.push(run)
    }
    return wanted
  }

  #isBusy(workspaceId: string): boolean {
    return (
      this.core.kernel.db.row(
        `SELECT 1 FROM tasks_run WHERE place = ? AND status IN ('claimed', 'starting', 'running') AND ifnull(lease_until, 9e15) > ?
         LIMIT 1`,
        [workspaceId, this.core.now()],
      ) !== undefined
    )
  }

  async #take(wanted: RunRow, step: number): Promise<void> {
    if (step !== STEPS.tell && step !== STEPS.escalate) return
    const who = whoOf(this.core.kernel.actor)
    await this.core.write(who, (t, settle) => {
      const run = this.core.runs.get(wanted.id, t)
      if (run?.status !== 'queued') return
      if (step === STEPS.escalate)
        return escalate(this.core, t, who, run, 'starved: no session claimed the run', settle)
      const task = this.core.tasks.find(run.task_id, t)
      this.core.journal.write(t, who, 'task.run_starved', { task, run: run.id, payload: { queued_at: run.queued_at } })
    })
  }
}
