import { admitOccurrence, planOccurrence, type Scheduled } from '../jobs/plan.js'
import type { K } from '../needs.js'
import type { Limits } from '../runs/room.js'
import { Scheduler } from '../scheduler.js'
import { SimulatedClock } from './simulated-clock.js'
import { type Occasion, type Player, SimulatedRuns } from './simulated-runs.js'

/** A job with its cursor; times in epoch milliseconds. */
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
  /** Occurrences due before were missed because the daemon was down. */
  readonly startedAt: number
  /** Assumed downtimes of the daemon, ascending. */
  readonly offline: readonly Span[]
  /** Earlier runs that count toward fire limits. */
  readonly earlier: readonly { readonly of: Player['of']; readonly startedAt: number }[]
  /** Open runs and their remaining duration. */
  readonly going: readonly {
    readonly player: Player
    readonly attempt: number
    readonly scheduledAt?: number
    readonly leftMs: number
  }[]
  /** Occurrences that wait for a slot. */
  readonly queued: readonly { readonly job: string; readonly scheduledAt: number; readonly until: number }[]
  /** Ids of runs scheduled in the future: they were claimed before the clock was set back. */
  readonly known: readonly string[]
}

/** Runs the real scheduler over a future time span, on a simulated clock and in-memory runs. */
export async function simulateJobs(
  { jobs, limits, from, to, startedAt, offline, earlier, going, queued, known }: JobSimulation,
  log: K['log'],
  report: (occasion: Occasion) => void,
  stops: () => boolean,
): Promise<void> {
  const clock = new SimulatedClock(from)
  const byId = new Map(jobs.map(job => [job.of.jobId, job]))
  let scheduler: Scheduler | undefined
  const runs = new SimulatedRuns(clock, limits, report, job => catchUp(job), known)
  for (const { of, startedAt: at } of earlier) runs.recall(of, at)
  for (const { player, leftMs, ...attempted } of going) runs.begin(player, attempted, leftMs)

  const waiting = (job: SimulatedJob, occasion: { attempt: number; scheduledAt: number }, until: number) => ({
    player: job,
    scheduledAt: occasion.scheduledAt,
    until,
    occasion,
    admitted: () => {
      const position = { at: occasion.scheduledAt, next: job.next_run_at ?? undefined }
      const admission = admitOccurrence({ id: job.of.jobId, spec: job.spec }, position, clock.now(), limits, runs)
      job.next_run_at = admission.next ?? null
      return admission
    },
  })
  for (const { job: id, scheduledAt, until } of queued) {
    const job = byId.get(id)
    if (job) runs.wait(waiting(job, { attempt: 1, scheduledAt }, until))
  }

  const claim = (id: string, missedBefore: number): 'passed' | 'idle' | 'waiting' => {
    const job = byId.get(id)
    if (!job) return 'idle'
    const plan = planOccurrence({ id, spec: job.spec }, job, { now: clock.now(), missedBefore }, limits, runs)
    if (plan.outcome === 'idle' || plan.outcome === 'waiting') return plan.outcome
    job.next_run_at = plan.next ?? null
    if (plan.outcome !== 'run') return 'passed'
    const { at, run, skip, metadata } = plan
    job.last_scheduled_at = at
    const occasion = { attempt: 1, scheduledAt: at, run, skip, metadata }
    if (plan.waits) runs.wait(waiting(job, occasion, clock.now() + limits.queueWait))
    else runs.claim(job, occasion)
    return 'passed'
  }

  let missedBefore = startedAt
  /** Runs before a slot is reused, as in {@link Scheduler.catchUp}. */
  const catchUp = (id: string) => {
    const isDue = () => (byId.get(id)?.next_run_at ?? Number.POSITIVE_INFINITY) <= clock.now()
    for (let passed = true; passed && isDue(); ) passed = claim(id, missedBefore) === 'passed'
    scheduler?.refresh(id)
  }

  /** One daemon lifetime. */
  const live = async (until: number): Promise<void> => {
    const ending = new AbortController()
    scheduler = new Scheduler(
      { clock, log },
      {
        claim: async job => ({ outcome: claim(job, missedBefore) }),
        setBack: async () => [],
        dueAt: job => byId.get(job)?.next_run_at ?? undefined,
        // The claim already started the simulated run.
        dispatch: () => {},
      },
    )
    if (missedBefore !== startedAt) runs.resume()
    for (const job of jobs) scheduler.refresh(job.of.jobId)
    const done = scheduler.run(ending.signal)
    await clock.runTo(until, stops)
    ending.abort()
    await done
  }

  for (const outage of offline) {
    await live(outage.from)
    runs.shutDown()
    await clock.runTo(outage.to, stops)
    missedBefore = outage.to
  }
  await live(to)
}
