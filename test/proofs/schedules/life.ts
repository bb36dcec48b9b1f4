import { rm } from 'node:fs/promises'
import { seededIds } from '../../../testing/seeded-ids.js'
import { VirtualClock } from '../../../testing/virtual-clock.js'
import type { Reply } from '../../harness/kernel.js'
import { type Bench, bench } from '../../plugins/work/automation/bench.js'
import { completed } from '../../plugins/work/automation/fake-sessions.js'
import type { PlannedJob } from './random-jobs.js'

const [SECOND, HOUR] = [1000, 3_600_000]
/** Less than the time within which the scheduler looks at the wall clock. */
const NOTICED_MS = 61 * SECOND
/** The guard of the disk looks every minute of the virtual clock; what it finds is not what is proven here. */
const freeBytes = async () => 2 ** 40
/** Between two instants at which something is due nothing waits for more than promises. */
const oneTurn = () => new Promise(resolve => setImmediate(resolve))

export interface Lived {
  /** Wall clock up to which everything has to be accounted for. */
  readonly end: number
  readonly runs: ReadonlyMap<string, Reply>
  /** Times of the wall clock in which occurrences may be late: the daemon was away, or its clock was wrong. */
  readonly troubled: readonly { readonly from: number; readonly to: number }[]
  /** Times that came twice, for the clock was set back. */
  readonly repeated: readonly { readonly from: number; readonly to: number }[]
  readonly stops: number
  readonly kills: number
  readonly jumps: number
}

export interface LifeOptions {
  readonly timezone: string
  readonly start: number
  readonly end: number
  readonly jobs: readonly PlannedJob[]
  readonly mishaps: number
  readonly seed: number
}

/** Lets a daemon live from `start` to `end`, with mishaps at instants of chance. */
export async function live({ timezone, start, end, jobs, mishaps, seed }: LifeOptions): Promise<Lived> {
  const { random } = seededIds(seed)
  const some = (most: number) => Math.max(1, Math.floor((random() * most) / SECOND)) * SECOND
  // What is due together waits for the one slot that there is, also over stops and kills; none of it may be lost.
  const limits = { max_concurrent_jobs: 1, default_fire_limit: { max: 100_000, window: '1h' } }
  const config = { automation: { ...limits, timezone } }
  let b = await bench({ config, clock: new VirtualClock(start), answer: () => completed, freeBytes })
  const runs = new Map<string, Reply>()
  const troubled: { from: number; to: number }[] = []
  const repeated: { from: number; to: number }[] = []
  const did = { stops: 0, kills: 0, jumps: 0 }
  for (const job of jobs) {
    const { status, body } = await b.put(job.id, specOf(job))
    if (status !== 201) throw new Error(`${job.id}: ${JSON.stringify(body)}`)
  }
  const restart = async (how: 'stops' | 'kills', away: number) => {
    const from = b.clock.now()
    const home = how === 'kills' ? await b.snapshot() : b.home
    await b.kernel.close()
    if (home !== b.home) await rm(b.home, { recursive: true, force: true })
    b = await bench({ home, config, clock: new VirtualClock(from + away), answer: () => completed, freeBytes })
    await atRest(b)
    troubled.push({ from, to: from + away })
    did[how]++
  }
  const jump = async (ms: number) => {
    const from = b.clock.now()
    b.clock.jump(ms)
    await b.clock.advance(NOTICED_MS)
    await atRest(b)
    const to = b.clock.now()
    troubled.push({ from: Math.min(from, from + ms), to: Math.max(from, to) })
    if (ms < 0) repeated.push({ from: from + ms, to: from })
    did.jumps++
  }
  const times = Array.from({ length: mishaps }, () => start + 4 * 24 * HOUR + some(end - start - 8 * 24 * HOUR))
  for (const at of times.toSorted((x, y) => x - y)) {
    await pass(b, at)
    const dice = random()
    if (dice < 0.35) await restart('stops', some(5 * 24 * HOUR))
    else if (dice < 0.7) await restart('kills', some(5 * 24 * HOUR))
    else await jump((random() < 0.5 ? -1 : 1) * some(30 * HOUR))
    await book(b, jobs, runs)
  }
  await pass(b, end)
  await book(b, jobs, runs)
  await b.end()
  await rm(b.home, { recursive: true, force: true })
  return { end, runs, troubled, repeated, ...did }
}

const specOf = ({ plan, policy, graceSeconds, id }: PlannedJob) => ({
  name: id,
  agent_name: 'report',
  prompt: 'Write the report.',
  schedule: {
    ...(plan.mode === 'every' ? { mode: 'every', interval: `${plan.minutes}m` } : { mode: 'cron', expr: plan.expr }),
    catch_up_policy: policy,
    misfire_grace_seconds: graceSeconds,
  },
})

/** From one instant at which something is due to the next. */
async function pass(b: Bench, until: number): Promise<void> {
  while (b.clock.now() < until) {
    const next = await atRest(b)
    await b.clock.advance(Math.min(next, until) - b.clock.now(), oneTurn)
    await atRest(b)
  }
}

/** So many looks in vain, each some milliseconds after the one before: the disk was slow, and what comes next waits for time to pass. */
const STILL = 100

/** Resolves when nothing is due and all runs are over; with the instant at which a job is due next. */
async function atRest(b: Bench): Promise<number> {
  let looks = 0
  const { next } = await b.until(async () => {
    // A clock that stands still fires no timer that was set while it did.
    if (++looks % STILL === 0) await b.clock.advance(SECOND)
    const { automation } = (await b.request('GET', '/api/status')).body
    const due: string | null = automation.scheduled_jobs[0]?.next_run_at ?? null
    const isDue = due !== null && Date.parse(due) <= b.clock.now()
    if (automation.next_fire !== due || isDue) return false
    const { runs } = (await b.request('GET', '/api/automation/runs?limit=20')).body
    if (runs.some((run: Reply) => !run.ended_at)) return false
    return { next: due === null ? Number.POSITIVE_INFINITY : Date.parse(due) }
  }, 'nothing is due and nothing runs')
  return next
}

async function book(b: Bench, jobs: readonly PlannedJob[], runs: Map<string, Reply>): Promise<void> {
  for (const { id } of jobs)
    for (const run of (await b.request('GET', `/api/automation/jobs/${id}/runs?limit=1000`)).body.runs)
      runs.set(run.id, run)
}
