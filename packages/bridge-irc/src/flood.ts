import type { Timing } from '../../bridge-kit/src/index.js'

/** Token bucket for lines: a burst, then a sustained rate. The server disconnects clients that exceed its own limit. */
export class FloodControl {
  #lines: number
  #at: number

  constructor(
    private readonly burst: number,
    private readonly perMinute: number,
    private readonly timing: Timing,
  ) {
    this.#lines = burst
    this.#at = timing.now()
  }

  /** Milliseconds until `lines` can be written. */
  waitFor(lines: number): number {
    const now = this.timing.now()
    this.#lines = Math.min(this.burst, this.#lines + ((now - this.#at) * this.perMinute) / 60_000)
    this.#at = now
    return Math.max(0, Math.ceil(((lines - this.#lines) * 60_000) / this.perMinute))
  }

  /** Resolves when one line may be written, and counts it. */
  async take(signal: AbortSignal): Promise<void> {
    const ms = this.waitFor(1)
    this.#lines -= 1
    if (ms > 0) await this.timing.sleep(ms, signal)
  }
}
