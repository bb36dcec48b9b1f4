import { messageOf, type Timer } from '../../../kernel/plugin.js'
import type { TaskCore } from '../core.js'

/** Between two looks at least, in milliseconds: what is left for a hold may become ever less. */
const LEAST_MS = 100
/** A day at most: nothing is due for longer than that without a look. */
const MOST_MS = 86_400_000

/** One timer for the first hold whose time ends; the sweep would be late. */
export class Alarm {
  #timer: Timer | undefined
  #isStopped = false

  constructor(
    private readonly core: TaskCore,
    /** Epoch milliseconds; undefined: none. */
    private readonly next: () => number | undefined,
    private readonly due: () => Promise<void>,
  ) {}

  /** Waits for what ends first now. */
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
      this.core.kernel.log.error(`what is held to time could not be counted: ${messageOf(error)}`)
    }
    this.set()
  }
}
