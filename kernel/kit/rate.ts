import type { Clock } from '../contract/basics.js'

/** How much of something is allowed: at once, and per second in the long run. */
export interface Rate {
  readonly burst: number
  readonly perSecond: number
}

/** A token bucket: holds `burst` when full and gains `perSecond`. */
export class TokenBucket {
  #left: number
  #at: number

  constructor(
    private readonly rate: Rate,
    private readonly clock: Pick<Clock, 'monotonic'>,
  ) {
    this.#left = rate.burst
    this.#at = clock.monotonic()
  }

  /** What is left now, in tokens; negative while it is in debt. */
  get left(): number {
    const now = this.clock.monotonic()
    this.#left = Math.min(this.rate.burst, this.#left + ((now - this.#at) / 1000) * this.rate.perSecond)
    this.#at = now
    return this.#left
  }

  /** Takes `n`, whether they are there or not; returns the milliseconds until the debt is paid, 0 when there is none. */
  take(n: number): number {
    this.#left = this.left - n
    return this.#left >= 0 ? 0 : (-this.#left / this.rate.perSecond) * 1000
  }

  /** Takes `n` if they are there; says whether they were. */
  tryTake(n: number): boolean {
    if (this.left < n) return false
    this.#left -= n
    return true
  }
}
