// proof, timeout: 180s: months of jobs against a model

import { rm } from 'node:fs/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { seededIds } from '../../../../testing/seeded-ids.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import type { Reply } from '../../../harness/kernel.js'
import { firstSeed } from '../../../proofs/library/seed.js'
import { type Bench, bench, hourly, START } from './bench.js'
import { completed } from './fake-sessions.js'
import { checkAccounts, type ModelSchedule, type Plan } from './schedule-model.js'

const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000]
const JOBS = ['a', 'b', 'c', 'd', 'e']
const CONFIG = { automation: { max_concurrent_jobs: 1000, default_fire_limit: { max: 1000, window: '1h' } } }

const minuteOf = (n: number) => n % 60
const hourOf = (n: number) => Math.floor(n / 60) % 24
/** 0 is Sunday, and the first day of 1970 was a Thursday. */
const weekdayOf = (n: number) => (Math.floor(n / 1440) + 4) % 7
const SCHEDULES: readonly ModelSchedule[] = [
  ...[7 * HOUR + 13 * MINUTE, 26 * HOUR, 3 * DAY, 10 * DAY].map(ms => ({ kind: 'every', ms }) as const),
  { kind: 'cron', expr: '15 */8 * * *', matches: n => minuteOf(n) === 15 && hourOf(n) % 8 === 0 },
  { kind: 'cron', expr: '0 9 * * *', matches: n => minuteOf(n) === 0 && hourOf(n) === 9 },
  { kind: 'cron', expr: '30 6 * * 1', matches: n => minuteOf(n) === 30 && hourOf(n) === 6 && weekdayOf(n) === 1 },
]
const POLICIES = ['skip_missed', 'coalesce', 'replay', 'run_once_on_catchup'] as const

/** A daemon through months of ordinary life and mishaps, and the books that the model keeps of it. */
class Simulation {
  readonly #random: () => number
  readonly #plans = new Map<string, Plan[]>()
  readonly #versions = new Map<string, number>()
  readonly #on = new Map<string, Record<string, unknown>>()
  readonly runs = new Map<string, Reply>()
  readonly dispatched: string[] = []
  readonly did: Record<string, number> = {}

  private constructor(
    seed: number,
    private b: Bench,
  ) {
    this.#random = seededIds(seed).random
  }

  static async start(seed: number): Promise<Simulation> {
    const simulation = new Simulation(seed, await bench({ config: CONFIG, answer: () => completed }))
    for (const id of JOBS) await simulation.#edit(id)
    return simulation
  }

  async step(): Promise<void> {
    const dice = this.#random()
    const what =
      dice < 0.4
        ? 'live'
        : dice < 0.55
          ? 'hold'
          : dice < 0.7
            ? 'edit'
            : dice < 0.8
              ? 'stop'
              : dice < 0.85
                ? 'kill'
                : 'jump'
    this.did[what] = (this.did[what] ?? 0) + 1
    if (what === 'live') await this.#live(this.#some(8 * DAY))
    else if (what === 'hold') await this.#live(this.#some(3 * DAY), true)
    else if (what === 'edit') await this.#edit(this.#one(JOBS))
    else if (what === 'jump') await this.#jump((this.#random() < 0.4 ? -1 : 1) * this.#some(30 * HOUR))
    else await this.#restart(what, this.#some(6 * DAY))
    await this.#quiet()
    await this.#book()
  }

  /** Lets time pass from one instant to the next. With `hold`, agents take their time until the end. */
  async #live(ms: number, hold = false): Promise<void> {
    const end = this.b.clock.now() + ms
    this.b.sessions.answer = hold ? undefined : () => completed
    // A prompt that came after those before were let go waits still.
    if (!hold) this.#release()
    for (;;) {
      const next = (await this.#status()).next_fire
      const at = next === null ? end : Math.min(Date.parse(next), end)
      await this.b.clock.advance(at - this.b.clock.now())
      await this.#quiet()
      if (at === end) break
    }
    this.#release()
  }

  async #edit(id: string): Promise<void> {
    const before = this.#on.get(id)
    const version = this.#versions.get(id) ?? 0
    this.#versions.set(id, version + 1)
    if (before && this.#random() < 0.3) {
      await this.b.put(id, { ...before, enabled: false }, version)
      await this.b.until(async () => (await this.b.job(id)).next_run === null, 'it is off')
      this.#on.delete(id)
      return
    }
    const policy = this.#one(POLICIES)
    const grace = this.#one([0, 60, 7200])
    const schedule = this.#one(SCHEDULES)
    const spec = hourly({
      name: id,
      schedule: {
        ...(schedule.kind === 'every'
          ? { mode: 'every', interval: `${schedule.ms / SECOND}s` }
          : { mode: 'cron', expr: schedule.expr }),
        catch_up_policy: policy,
        misfire_grace_seconds: grace,
      },
      // Another name changes the record alone; a plan is new when the schedule is, so let it be.
      prompt: `${version}`,
      ...(this.#random() < 0.3 ? { fire_limit: { max: 2, window: '20h' } } : {}),
    })
    const same = before && JSON.stringify(before.schedule) === JSON.stringify(spec.schedule)
    await this.b.put(id, spec, version)
    await this.b.until(async () => (await this.b.job(id)).prompt === `${version}`, 'it is written')
    await this.#quiet()
    this.#on.set(id, spec)
    if (same) return
    const now = this.b.clock.now()
    const plans = this.#plans.get(id) ?? []
    const graceMs = (grace || 1) * SECOND
    const times = { from: now, must: now, may: now, to: now, reached: now }
    plans.push({ schedule, policy, graceMs, ...times, repeated: false, runs: new Set() })
    this.#plans.set(id, plans)
  }

  /** Sets the wall clock, and gives the daemon the minute that it takes to notice. */
  async #jump(ms: number): Promise<void> {
    this.b.clock.jump(ms)
    const back = this.b.clock.now()
    await this.b.clock.advance(61 * SECOND)
    await this.#quiet()
    if (ms > 0) return
    for (const plan of this.#present()) {
      plan.may = Math.min(plan.may, back)
      plan.must = Math.min(plan.must, back + 61 * SECOND)
      plan.reached = back + 61 * SECOND
      plan.repeated = true
    }
  }

  async #restart(how: 'stop' | 'kill', ms: number): Promise<void> {
    // Agents are at work at every kill and at every other stop.
    if (how === 'kill' || this.#random() < 0.5) {
      this.b.sessions.answer = undefined
      const next = (await this.#status()).next_fire
      if (next !== null) await this.b.clock.advance(Date.parse(next) - this.b.clock.now())
      await this.#quiet()
      await this.#book()
    }
    const home = how === 'kill' ? await this.b.snapshot() : this.b.home
    const open = [...this.runs.values()].filter(run => !run.ended_at).map(run => run.id)
    const at = this.b.clock.now() + ms
    this.#ledger()
    if (how === 'kill') this.b.sessions.answer = () => completed
    await this.b.kernel.close()
    if (home !== this.b.home) await rm(this.b.home, { recursive: true, force: true })
    this.b = await bench({ home, clock: new VirtualClock(at), config: CONFIG, answer: () => completed })
    await this.#quiet()
    // A stop says so to the agents at work; a kill says nothing, and they are found crashed.
    const ending = how === 'kill' ? ['failed', 'agent_crashed'] : ['canceled', 'shutdown']
    for (const id of open) {
      const { run } = (await this.b.request('GET', `/api/automation/runs/${id}`)).body
      assert.equal([run.status, run.error.split(':')[0]], ending, id)
    }
  }

  async #status(): Promise<Reply> {
    return (await this.b.request('GET', '/api/status')).body.automation
  }

  /** Nothing is due any more, and what runs waits for its agent. */
  async #quiet(): Promise<void> {
    await this.b.until(async () => {
      const { next_fire: heap, scheduled_jobs: cursors } = await this.#status()
      const first = cursors[0]?.next_run_at ?? null
      if (heap !== first || (first !== null && Date.parse(first) <= this.b.clock.now())) return false
      if ((await this.#open('scheduled')) > 0) return false
      return this.b.sessions.answer === undefined || (await this.#open('running')) === 0
    }, 'nothing is due and nothing runs')
  }

  async #open(status: string): Promise<number> {
    return (await this.b.request('GET', `/api/automation/runs?status=${status}`)).body.runs.length
  }

  #release(): void {
    this.b.sessions.answer = () => completed
    for (const { id } of this.b.sessions.created) this.b.sessions.finish(id, completed)
  }

  #ledger(): void {
    this.dispatched.push(...this.b.sessions.created.map(session => session.cause ?? ''))
  }

  #present(): Plan[] {
    return [...this.#on.keys()].flatMap(id => this.#plans.get(id)?.slice(-1) ?? [])
  }

  /** Notes the new runs under the plans of now. */
  async #book(): Promise<void> {
    const now = this.b.clock.now()
    for (const plan of this.#present()) {
      plan.to = Math.max(plan.to, now)
      plan.reached = Math.max(plan.reached, now)
    }
    for (const run of await this.b.runs()) {
      if (!this.runs.has(run.id)) this.#plans.get(run.job_id)?.at(-1)?.runs.add(run.id)
      this.runs.set(run.id, run)
    }
  }

  /** Of its own time, jumps not counted out. */
  get days(): number {
    return (this.b.clock.now() - START) / DAY
  }

  async end(): Promise<void> {
    await this.#book()
    this.#ledger()
    assert.is(new Set(this.dispatched).size, this.dispatched.length, 'a run was dispatched twice')
    for (const [id, plans] of this.#plans) {
      const own = new Map([...this.runs].filter(([, run]) => run.job_id === id))
      assert.is(new Set([...own.values()].map(run => run.scheduled_at)).size, own.size, `${id}: an instant fired twice`)
      for (const plan of plans) checkAccounts(id, plan, own)
    }
    await this.b.end()
    await rm(this.b.home, { recursive: true, force: true })
  }

  #one<T>(from: readonly T[]): T {
    return from[Math.floor(this.#random() * from.length)] as T
  }

  /** Up to `most`, in whole seconds, the short ones more often. */
  #some(most: number): number {
    return Math.max(1, Math.floor((this.#random() ** 2 * most) / SECOND)) * SECOND
  }
}

const seed = firstSeed()
test(`months of jobs, edits, stops, kills and wrong clocks: every occurrence is accounted for (SVC_SEED=${seed})`, async () => {
  const simulation = await Simulation.start(seed)
  try {
    for (let step = 0; step < Number(process.env.SVC_STEPS ?? 15); step++) await simulation.step()
    await simulation.end()
  } catch (error) {
    console.log(`again with SVC_SEED=${seed}`)
    throw error
  }
  if (process.env.SVC_SEED)
    console.log(simulation.runs.size, simulation.dispatched.length, simulation.did, simulation.days)
  assert.ok(simulation.runs.size > 5, `${simulation.runs.size} runs`)
})

test.run()
