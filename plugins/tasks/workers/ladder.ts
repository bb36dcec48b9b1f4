import type { Recovery } from '../claims/recovery.js'
import type { TaskCore } from '../core.js'
import type { RunRow } from '../runs/run-row.js'
import { whoOf } from '../who.js'

/** A run that could be claimed and that nobody has claimed for so long is starved. */
const STARVED_MS = 2 * 60_000
/** Between two steps of one run. */
const STEP_MS = 60_000
const BATCH = 100
/** What happens at which step. */
const STEPS = { fanOut: 2, spawn: 4, tell: 6, escalate: 10 }

interface Rung {
  readonly step: number
  readonly at: number
}

/**
 * What becomes of runs of a workspace that nobody claims and of which no profile says who works on them: they wait, then all
 * who wait for work are told of them once more, then a session is started, then it is told that they starve, and in the end they need attention. Sessions that hold other runs
 * there may come for them: as long as there is one, nothing happens.
 */
export class Ladder {
  readonly #rungs = new Map<string, Rung>()

  constructor(
    private readonly core: TaskCore,
    private readonly recovery: Recovery,
  ) {}

  /** Takes the steps that are due; runs for which a session is to be started now. */
  async starved(): Promise<RunRow[]> {
    const now = this.core.now()
    const runs = this.core.kernel.db.all<RunRow>(
      `SELECT * FROM tasks_run WHERE status = 'queued' AND claimable = 1 AND place <> '' AND queued_at <= ?
         AND profiled = 0 ORDER BY queued_at, id LIMIT ${BATCH}`,
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
        // Each new run is offered to all who wait, so that this is for one whose word was lost.
        if (step === STEPS.fanOut) this.core.tellClaimable()
        await this.#take(run, step)
      }
      if (step >= STEPS.spawn && step < STEPS.escalate) wanted.push(run)
    }
    return wanted
  }

  #isBusy(place: string): boolean {
    return (
      this.core.kernel.db.row(
        `SELECT 1 FROM tasks_run WHERE place = ? AND status IN ('claimed', 'starting', 'running') AND ifnull(lease_until, 9e15) > ?
         LIMIT 1`,
        [place, this.core.now()],
      ) !== undefined
    )
  }

  async #take(wanted: RunRow, step: number): Promise<void> {
    if (step !== STEPS.tell && step !== STEPS.escalate) return
    const who = whoOf(this.core.kernel.actor)
    await this.core.write(who, (t, settle) => {
      const run = this.core.runs.get(wanted.id, t)
      if (run?.status !== 'queued') return
      if (step === STEPS.escalate) return this.recovery.escalate(t, who, run, 'starved: no session came for it', settle)
      const task = this.core.tasks.find(run.task_id, t)
      this.core.journal.write(t, who, 'task.run_starved', { task, run: run.id, payload: { queued_at: run.queued_at } })
    })
  }
}
