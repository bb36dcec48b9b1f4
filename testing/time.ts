import { storeSettled, VirtualClock } from './virtual-clock.js'

/** Milliseconds of real time between two steps of the clock during a wait. */
const STEP_MS = 1
/**
 * A virtual clock for tests. It moves only during {@link during} and {@link pass}; otherwise it stands still, so that a test sees
 * every pending timer.
 */
export class WaitingTime {
  readonly clock = new VirtualClock(Date.now())
  /** Requested clock speeds of the current waits. */
  readonly #paces = new Map<object, number>()
  #running: Promise<void> | undefined
  #advances: Promise<unknown> = Promise.resolve()

  /**
   * Lets time pass until the work is done: the real time, or `pace` times that. Concurrent waits share one advance of the clock, at
   * the highest pace.
   */
  async during<T>(work: Promise<T>, pace = 1): Promise<T> {
    work.catch(() => {})
    const waiter = {}
    this.#paces.set(waiter, pace)
    this.#running ??= this.#run()
    const running = this.#running
    try {
      return await Promise.race([work, running.then(() => work)])
    } finally {
      this.#paces.delete(waiter)
      // After the last wait the clock has stopped.
      if (this.#paces.size === 0) await running.catch(() => {})
    }
  }

  /**
   * Advances the clock by `ms` milliseconds, timer by timer. After each timer it waits until the writes that it started, and their
   * successors, are on the disk. It does not wait for processes and sockets: use {@link during} for those.
   */
  pass(ms: number): Promise<void> {
    return this.#advance(ms, storeSettled)
  }

  async #run(): Promise<void> {
    let lastTime = performance.now()
    try {
      for (;;) {
        await new Promise(resolve => setTimeout(resolve, STEP_MS))
        if (this.#paces.size === 0) return
        const pace = Math.max(...this.#paces.values())
        // Whole milliseconds, like the system's wall clock; the remainder counts for the next step.
        const step = Math.floor((performance.now() - lastTime) * pace)
        lastTime += step / pace
        await this.#advance(step)
      }
    } finally {
      this.#running = undefined
    }
  }

  /** One at a time: a clock cannot be advanced twice concurrently. */
  #advance(ms: number, settled?: () => Promise<unknown>): Promise<void> {
    const advance = this.#advances.then(() => this.clock.advance(ms, settled))
    this.#advances = advance.catch(() => {})
    return advance
  }
}
