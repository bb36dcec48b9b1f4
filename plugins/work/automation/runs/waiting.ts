import { messageOf, type Timer } from '../../../../kernel/plugin.js'
import type { Claim, Claims } from '../claim.js'
import type { Dispatcher } from '../dispatch.js'
import type { K } from '../needs.js'
import type { RunStore } from './runs.js'
import type { WaitingRows } from './waiting-rows.js'

/** Retry delay after a failed write of the queue, and the longest sleep. */
const RETRY_MS = 5000
/** Waiting occurrences that are ended per transaction. */
const DROPPED_AT_ONCE = 200
const LONGEST_MS = 60_000

/** The plugin as its queue sees it. */
export interface WaitingWork {
  readonly runs: RunStore
  readonly claims: Pick<Claims, 'admit'>
  readonly rows: Pick<WaitingRows, 'nextWaitEnd' | 'waiting'>
  readonly dispatcher: Pick<Dispatcher, 'start'>
  /** Claims the due occurrences of a job whose run has ended. */
  readonly catchUp: (job: string) => Promise<void>
}

/** Claimed occurrences that wait for a slot. They are durable: a restarted daemon continues with them. */
export class WaitingRuns {
  #timer: Timer | undefined
  #looking: Promise<void> | undefined
  #again = false
  #open = false

  constructor(
    private readonly kernel: K,
    private readonly work: WaitingWork,
  ) {
    work.runs.slotFreed = job => void this.#handOn(job)
  }

  /** The next occurrence of the job may have been due before all waiting ones, so it is claimed before the slot is reused. */
  async #handOn(job: string): Promise<void> {
    if (this.#open && job !== '') await this.work.catchUp(job)
    await this.check()
  }

  /** Checks the queue after a claim that waits. */
  noted(claim: Claim): Claim {
    if (claim.outcome === 'queued') void this.check()
    return claim
  }

  /** Starts handing out slots. Resolves when the free slots have been given to occurrences of the previous daemon. */
  start(): Promise<void> {
    this.#open = true
    return this.check()
  }

  /** Drops the waiting occurrences of a restored home, because the original home runs them. */
  async drop(): Promise<void> {
    for (
      let rows = this.work.rows.waiting(DROPPED_AT_ONCE);
      rows.length > 0;
      rows = this.work.rows.waiting(DROPPED_AT_ONCE)
    )
      await this.kernel.db.tx(t => {
        for (const run of rows)
          this.work.runs.move(t, run.id, 'canceled', {
            error: 'home_held: the home was restored while this run waited',
          })
      })
  }

  close(): void {
    this.#open = false
    this.#timer?.cancel()
  }

  /** Called when a slot may be free, or a new occurrence waits. */
  check(): Promise<void> {
    if (!this.#open) return Promise.resolve()
    this.#again = true
    this.#looking ??= this.#all().finally(() => {
      this.#looking = undefined
      // A request may have arrived while the last round was ending.
      if (this.#again) void this.check()
    })
    return this.#looking
  }

  async #all(): Promise<void> {
    const { clock, log } = this.kernel
    let wait = LONGEST_MS
    let isEmpty = false
    while (this.#again && this.#open) {
      this.#again = false
      try {
        isEmpty = this.work.rows.nextWaitEnd() === undefined
        if (isEmpty) break
        for (const admission of await this.work.claims.admit()) {
          if (admission.outcome === 'admitted') this.work.dispatcher.start(admission.run, admission.job)
        }
      } catch (error) {
        log.error(`waiting occurrences were not admitted: ${messageOf(error)}`)
        wait = RETRY_MS
      }
    }
    this.#timer?.cancel()
    const next = isEmpty ? undefined : this.work.rows.nextWaitEnd()
    if (next === undefined || !this.#open) return
    const ms = Math.max(1, Math.min(wait, next - clock.now()))
    this.#timer = clock.timeout(ms, () => void this.check(), { unref: true })
  }
}
