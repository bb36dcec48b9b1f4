import type { PluginKernel } from '../../../kernel/plugin.js'
import { planOccurrence, type Scheduled } from '../jobs/plan.js'
import type { Limits } from '../runs/room.js'
import { Scheduler } from '../scheduler.js'
import { SimulatedClock } from './simulated-clock.js'
import { type Occasion, type Player, SimulatedRuns } from './simulated-runs.js'

/** A job, and where it stands when the simulation begins; times in epoch milliseconds. */
export interface SimulatedJob extends Player {
  readonly of: { readonly jobId: string }
  readonly spec: Scheduled['spec']
  next_run_at: number | null
  last_scheduled_at: number | null
}

/** Epoch milliseconds: from `from` up to `to`. */
export interface Span {
  readonly from: number
  readonly to: number
}

export interface JobSimulation extends Span {
  readonly jobs: readonly SimulatedJob[]
  readonly limits: Limits
  /** What is due before was missed, and the daemon was not there. */
  readonly startedAt: number
  /** When the daemon does not run, ascending. */
  readonly offline: readonly Span[]
  /** Runs that were claimed before, as far as fire limits count them. */
  readonly earlier: readonly { readonly of: Player['of']; readonly startedAt: number }[]
  /** Runs that go on, and how long they still do. */
  readonly going: readonly {
    readonly player: Player
    readonly attempt: number
    readonly scheduledAt?: number
    readonly leftMs: number
  }[]
  /** Ids of runs of occurrences that are to come, claimed before the clock was set back. */
  readonly known: readonly string[]
}

/** Lets the scheduler run through a time to come: its own code, on a clock and books that nobody else has. */
export async function simulateJobs(
  { jobs, limits, from, to, startedAt, offline, earlier, going, known }: JobSimulation,
  log: PluginKernel['log'],
  told: (occasion: Occasion) => void,
  stops: () => boolean,
): Promise<void> {
  const clock = new SimulatedClock(from)
  const byId = new Map(jobs.map(job => [job.of.jobId, job]))
  let scheduler: Scheduler | undefined
  const runs = new SimulatedRuns(clock, limits, told, job => scheduler?.refresh(job), known)
  for (const { of, startedAt: at } of earlier) runs.recall(of, at)
  for (const { player, leftMs, ...attempted } of going) runs.begin(player, attempted, leftMs)

  const claim = (id: string, missedBefore: number): 'passed' | 'idle' | 'waiting' => {
    const job = byId.get(id)
    if (!job) return 'idle'
    const plan = planOccurrence({ id, spec: job.spec }, job, { now: clock.now(), missedBefore }, limits, runs)
    if (plan.outcome === 'idle' || plan.outcome === 'waiting') return plan.outcome
    job.next_run_at = plan.next ?? null
    if (plan.outcome !== 'run') return 'passed'
    const { at, run, skip, metadata } = plan
    job.last_scheduled_at = at
    runs.claim(job, { attempt: 1, scheduledAt: at, run, skip, metadata })
    return 'passed'
  }

  /** The life of one daemon. */
  const live = async (until: number, missedBefore: number): Promise<void> => {
    const ending = new AbortController()
    scheduler = new Scheduler(
      { clock, log },
      {
        claim: async job => ({ outcome: claim(job, missedBefore) }),
        setBack: async () => [],
        dueAt: job => byId.get(job)?.next_run_at ?? undefined,
        // What was claimed is going on already.
        dispatch: () => {},
      },
    )
    for (const job of jobs) scheduler.refresh(job.of.jobId)
    const done = scheduler.run(ending.signal)
    await clock.runTo(until, stops)
    ending.abort()
    await done
  }

  let missedBefore = startedAt
  for (const outage of offline) {
    await live(outage.from, missedBefore)
    runs.shutDown()
    await clock.runTo(outage.to, stops)
    missedBefore = outage.to
  }
  await live(to, missedBefore)
}
