import * as v from 'valibot'
import type { Clock, Setting } from '../../../kernel/plugin.js'
import { durationMs } from '../../../schemas/duration.js'

const count = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(1_000_000))

/** Requests per window, and the number of further ones that may wait; all zero: no limit. */
export const RateLimit = v.pipe(
  v.strictObject({
    requests: v.optional(count, 0),
    window: v.optional(
      v.pipe(
        v.string(),
        v.check(text => durationMs(text) !== undefined, 'a duration like 30s or 1m'),
      ),
      '0s',
    ),
    queue: v.optional(count, 0),
  }),
  v.check(
    ({ requests, window, queue }) =>
      (requests === 0 && queue === 0 && durationMs(window) === 0) || (requests > 0 && (durationMs(window) ?? 0) > 0),
    'requests and window must both be positive when any field is set',
  ),
)
export type RateLimit = v.InferOutput<typeof RateLimit>

/** Limit on the operator's writes through the record routes. */
export const OperatorWriteLimit: Setting<RateLimit> = {
  path: 'extensions.resources.operator_write_rate_limit',
  section: 'hooks-extensions',
  schema: RateLimit,
  default: { requests: 0, window: '0s', queue: 0 },
  apply: 'restart-required',
}

/** A request that may wait. Its signal is made on first read, so only waiting requests read it. */
export interface Caller {
  readonly signal: AbortSignal
}

/**
 * A token bucket as one number, the theoretical arrival time of the next request: a burst of `requests`, then one every window /
 * requests. A request without a token waits if fewer than `queue` wait, else it is refused.
 */
export class RateLimiter {
  readonly #interval: number
  readonly #tolerance: number
  #arrival = Number.NEGATIVE_INFINITY
  #waiting = 0

  constructor(
    private readonly limit: RateLimit,
    private readonly clock: Clock,
  ) {
    const window = durationMs(limit.window) ?? 0
    this.#interval = limit.requests > 0 ? window / limit.requests : 0
    this.#tolerance = window - this.#interval
  }

  /**
   * Takes a token; returns the milliseconds until it is valid.
   * @param refusal makes the error for a missing token, from the milliseconds until there is one
   */
  take(refusal: (waitMs: number) => Error): number {
    if (this.#interval === 0) return 0
    const now = this.clock.monotonic()
    const next = Math.max(this.#arrival, now)
    const wait = next - this.#tolerance - now
    if (wait > 0 && this.#waiting >= this.limit.queue) throw refusal(wait)
    this.#arrival = next + this.#interval
    return wait
  }

  /** Resolves when the request may continue. Throws the refusal. */
  async pass(caller: Caller, refusal: (waitMs: number) => Error): Promise<void> {
    const wait = this.take(refusal)
    if (wait <= 0) return
    this.#waiting++
    try {
      await this.clock.sleep(wait, caller.signal)
    } finally {
      this.#waiting--
    }
  }
}
