import type { Clock } from '../../../../kernel/plugin.js'

/** What was seen of a process at the looks between turns. */
export class Looks {
  /** Monotonic; of the last sign of life. */
  #seenAt = 0
  /** The same in epoch milliseconds, for people. */
  presentAt = 0
  /** Looks in a row at which it stood still. */
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
