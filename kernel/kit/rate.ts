import type { Clock } from '../contract/basics.js'

/** A rate limit: the maximum burst, and the sustained rate per second. */
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

  /** Tokens left; negative while the bucket is in debt. */
  get left(): number {
    const now = this.clock.monotonic()
    this.#left = Math.min(this.rate.burst, this.#left + ((now - this.#at) / 1000) * this.rate.perSecond)
    this.#at = now
    return this.#left
  }

  /** Takes `n` tokens even into debt; returns the milliseconds until the debt is paid, 0 without debt. */
  take(n: number): number {
    this.#left = this.left - n
    return this.#left >= 0 ? 0 : (-this.#left / this.rate.perSecond) * 1000
  }

  /** Takes `n` tokens if there are enough; returns whether it did. */
  tryTake(n: number): boolean {
    if (this.left < n) return false
    this.#left -= n
    return true
  }
}
