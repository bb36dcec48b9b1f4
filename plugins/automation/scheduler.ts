import { DueHeap } from '../../kernel/kit/due-heap.js'
import { messageOf, type PluginKernel } from '../../kernel/plugin.js'
import type { Claim } from './claim.js'

/** The loop looks at the wall clock at least so often: timers do not notice when it is set or the machine sleeps. */
const LONGEST_SLEEP_MS = 60_000
/** Claims that share one sync of the disk. */
const BATCH = 64
/** After a claim that could not be written. */
const RETRY_MS = 5000

/** What the scheduler asks of its surroundings. */
export interface SchedulerWork {
  /** Claims what is due of a job, durably. */
  claim(job: string): Promise<Claim>
  /** The clock was set back: plans the jobs anew that this concerns, and names them. */
  setBack(): Promise<readonly string[]>
  /** When a job is due by its cursor. */
  dueAt(job: string): number | undefined
  /** Starts the work of a claim. */
  dispatch(claim: Claim & { outcome: 'claimed' }): void
}

/** Sleeps until the earliest job is due and fires it: one heap and one timer, however many jobs there are. */
export class Scheduler {
  readonly #heap = new DueHeap()
  #wake: () => void = () => {}
  #running = false

  constructor(
    private readonly kernel: Pick<PluginKernel, 'clock' | 'log'>,
    private readonly work: SchedulerWork,
  ) {}

  get running(): boolean {
    return this.#running
  }

  get nextDue(): number | undefined {
    return this.#heap.peek()?.at
  }

  /** Takes over from the cursor when a job is due. */
  refresh(job: string): void {
    this.set(job, this.work.dueAt(job))
  }

  set(job: string, at: number | undefined): void {
    if (at === undefined) this.#heap.delete(job)
    else this.#heap.set(job, at)
    this.#wake()
  }

  /** Fires what is due until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    this.#running = true
    let latest = this.kernel.clock.now()
    try {
      while (!signal.aborted) {
        const now = this.kernel.clock.now()
        if (now < latest) await this.#replan(latest - now)
        latest = now
        const due: string[] = []
        while (due.length < BATCH) {
          const first = this.#heap.take(now)
          if (!first) break
          due.push(first.key)
        }
        if (due.length > 0) await Promise.all(due.map(job => this.#fire(job)))
        else await this.#sleep(Math.min((this.nextDue ?? Number.POSITIVE_INFINITY) - now, LONGEST_SLEEP_MS), signal)
      }
    } finally {
      this.#running = false
    }
  }

  async #replan(ms: number): Promise<void> {
    try {
      const jobs = await this.work.setBack()
      for (const job of jobs) this.refresh(job)
      this.kernel.log.warn(`the clock was set back by ${Math.round(ms / 1000)} s; ${jobs.length} jobs are planned anew`)
    } catch (error) {
      this.kernel.log.error(`the clock was set back, and jobs could not be planned anew: ${messageOf(error)}`)
    }
  }

  async #fire(job: string): Promise<void> {
    try {
      const claim = await this.work.claim(job)
      // A backlog goes on when its run has ended, an idle one when its record has been projected.
      if (claim.outcome !== 'waiting' && claim.outcome !== 'idle') this.refresh(job)
      else if ((this.work.dueAt(job) ?? 0) > this.kernel.clock.now()) this.refresh(job)
      if (claim.outcome === 'claimed') this.work.dispatch(claim)
    } catch (error) {
      this.kernel.log.error(`job ${job} is due and could not be claimed: ${messageOf(error)}`, { job })
      this.#heap.set(job, this.kernel.clock.now() + RETRY_MS)
    }
  }

  #sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise(resolve => {
      const end = () => {
        timer.cancel()
        signal.removeEventListener('abort', end)
        this.#wake = () => {}
        resolve()
      }
      const timer = this.kernel.clock.timeout(ms, end, { unref: true })
      this.#wake = end
      signal.addEventListener('abort', end, { once: true })
    })
  }
}
