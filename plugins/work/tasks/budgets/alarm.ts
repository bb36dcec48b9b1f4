import { messageOf, type Timer } from '../../../../kernel/plugin.js'
import type { TaskCore } from '../core.js'

/** Minimum delay in milliseconds, since the remaining time of a hold can become arbitrarily small. */
const LEAST_MS = 100
/** Maximum delay in milliseconds. */
const MOST_MS = 86_400_000

/** One timer for the hold whose time budget ends first. The periodic sweep would be too late for it. */
export class Alarm {
  #timer: Timer | undefined
  #isStopped = false

  constructor(
    private readonly core: TaskCore,
    /** Epoch milliseconds; undefined: none. */
    private readonly next: () => number | undefined,
    private readonly due: () => Promise<void>,
  ) {}

  /** Schedules the timer for the earliest deadline. */
  set(): void {
    this.#timer?.cancel()
    if (this.#isStopped) return
    const at = this.next()
    if (at === undefined) {
      this.#timer = undefined
      return
    }
    const ms = Math.min(MOST_MS, Math.max(LEAST_MS, at - this.core.now()))
    this.#timer = this.core.kernel.clock.timeout(ms, () => void this.#run(), { unref: true })
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  async #run(): Promise<void> {
    try {
      await this.due()
    } catch (error) {
      this.core.kernel.log.error(`time budgets were not checked: ${messageOf(error)}`)
    }
    this.set()
  }
}
