import type { Clock } from '../../../../kernel/plugin.js'

/** Results of the periodic looks at a process between turns. */
export class Looks {
  /** Monotonic time of the last sign of life. */
  #seenAt = 0
  /** The same in epoch milliseconds, for people. */
  presentAt = 0
  /** Consecutive looks at which the process was unresponsive. */
  failed = 0
  isStale = false

  constructor(private readonly clock: Clock) {}

  alive(): void {
    this.#seenAt = this.clock.monotonic()
    this.presentAt = this.clock.now()
    this.failed = 0
    this.isStale = false
  }

  stoodStill(staleAfterMs: number): void {
    this.failed++
    this.isStale = this.clock.monotonic() - this.#seenAt > staleAfterMs
  }
}
