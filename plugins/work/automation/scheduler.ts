import { Alarm } from '../../../kernel/kit/alarm.js'
import { messageOf } from '../../../kernel/plugin.js'
import type { Claim } from './claim.js'
import type { K } from './needs.js'

/** Claims per batch: they share a few disk syncs. */
const BATCH = 128
/** Delay before retrying a claim that could not be written. */
const RETRY_MS = 5000

/** The plugin as its scheduler sees it. */
export interface SchedulerWork {
  /** Durably claims the due occurrence of a job. */
  claim(job: string): Promise<Claim>
  /** The clock was set back: replans the affected jobs and returns their ids. */
  setBack(): Promise<readonly string[]>
  /** Due time of a job according to its cursor. */
  dueAt(job: string): number | undefined
  /** Dispatches a claimed run. */
  dispatch(claim: Claim & { outcome: 'claimed' }): void
}

/** Fires jobs when they are due. */
export class Scheduler {
  readonly #alarm: Alarm
  #running = false

  constructor(
    private readonly kernel: Pick<K, 'clock' | 'log'>,
    private readonly work: SchedulerWork,
  ) {
    this.#alarm = new Alarm(kernel.clock, { batch: BATCH, retryMs: RETRY_MS })
  }

  get running(): boolean {
    return this.#running
  }

  get nextDue(): number | undefined {
    return this.#alarm.next
  }

  /** Whether a due job has not been claimed yet. */
  get isBehind(): boolean {
    return this.#running && (this.nextDue ?? Number.POSITIVE_INFINITY) <= this.kernel.clock.now()
  }

  /** Reloads the due time of a job from its cursor. */
  refresh(job: string): void {
    this.set(job, this.work.dueAt(job))
  }

  set(job: string, at: number | undefined): void {
    this.#alarm.set(job, at)
  }

  /** Claims the due occurrences of a job one by one, and reloads its due time. Never throws. */
  async catchUp(job: string): Promise<void> {
    let at = this.work.dueAt(job)
    const isDue = () => at !== undefined && at <= this.kernel.clock.now()
    for (let passed = this.#running; passed && isDue(); at = this.work.dueAt(job))
      passed = (await this.#fire(job)) === 'passed'
    if (!this.#running || !isDue()) this.set(job, at)
  }

  /** Fires due jobs until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    this.#running = true
    try {
      await this.#alarm.run(signal, {
        fire: async jobs => void (await Promise.all(jobs.map(job => this.#fire(job)))),
        failed: error => this.kernel.log.error(`due jobs were not claimed: ${messageOf(error)}`),
        setBack: ms => this.#replan(ms),
      })
    } finally {
      this.#running = false
    }
  }

  async #replan(ms: number): Promise<void> {
    try {
      const jobs = await this.work.setBack()
      for (const job of jobs) this.refresh(job)
      this.kernel.log.warn(`the clock was set back by ${Math.round(ms / 1000)} s; replanned ${jobs.length} jobs`)
    } catch (error) {
      this.kernel.log.error(`the clock was set back, but jobs could not be replanned: ${messageOf(error)}`)
    }
  }

  /** Resolves to the outcome of the claim; undefined when it could not be written. */
  async #fire(job: string): Promise<Claim['outcome'] | undefined> {
    try {
      const claim = await this.work.claim(job)
      // A waiting backlog is refreshed when its run ends, an idle job when its record has been projected.
      if (claim.outcome !== 'waiting' && claim.outcome !== 'idle') this.refresh(job)
      else if ((this.work.dueAt(job) ?? 0) > this.kernel.clock.now()) this.refresh(job)
      if (claim.outcome === 'claimed') this.work.dispatch(claim)
      return claim.outcome
    } catch (error) {
      this.kernel.log.error(`due job ${job} could not be claimed: ${messageOf(error)}`, { job })
      this.set(job, this.kernel.clock.now() + RETRY_MS)
      return undefined
    }
  }
}
