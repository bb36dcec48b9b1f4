import { DueHeap } from '../../../../kernel/kit/due-heap.js'
import { type Clock, type Timer, turn } from '../../../../kernel/plugin.js'

/** A clock that jumps from timer to timer, with one turn of the event loop at each. */
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
    // At equal times the heap returns the smaller key: the timer that was set first.
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

  /** Fires timers in order up to the instant; `stops` is checked between them. */
  async runTo(instant: number, stops: () => boolean = () => false): Promise<void> {
    for (;;) {
      // Let the work of the last timer proceed as far as it can without another timer.
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
