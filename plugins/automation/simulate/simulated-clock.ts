import { DueHeap } from '../../../kernel/kit/due-heap.js'
import { type Clock, type Timer, turn } from '../../../kernel/plugin.js'

/** The time of a simulation: it goes from timer to timer, and the event loop has its turn at each. */
export class SimulatedClock implements Clock {
  readonly #due = new DueHeap()
  readonly #timers = new Map<string, () => void>()
  readonly #start: number
  #now: number
  #made = 0

  /** @param start epoch milliseconds */
  constructor(start: number) {
    this.#start = start
    this.#now = start
  }

  now(): number {
    return this.#now
  }

  monotonic(): number {
    return this.#now - this.#start
  }

  timeout(ms: number, fn: () => void): Timer {
    // Among equal times the heap takes the smaller key: the timer that was set first.
    const key = String(this.#made++).padStart(12, '0')
    this.#due.set(key, this.#now + Math.max(0, ms))
    this.#timers.set(key, fn)
    return {
      cancel: () => {
        this.#due.delete(key)
        this.#timers.delete(key)
      },
    }
  }

  sleep(ms: number): Promise<void> {
    return new Promise(resolve => this.timeout(ms, resolve))
  }

  /** Lets timers fire, each at its own time, up to that instant; `stops` is asked between them. */
  async runTo(instant: number, stops: () => boolean = () => false): Promise<void> {
    for (;;) {
      // What a timer began has gone as far as it can without another one.
      await turn()
      if (stops()) return
      const next = this.#due.take(instant)
      if (!next) break
      this.#now = Math.max(this.#now, next.at)
      const fn = this.#timers.get(next.key)
      this.#timers.delete(next.key)
      fn?.()
    }
    this.#now = Math.max(this.#now, instant)
  }

  /** Cancels all timers. */
  clear(): void {
    for (const key of this.#timers.keys()) this.#due.delete(key)
    this.#timers.clear()
  }
}
