import { VirtualClock } from './virtual-clock.js'

/** Milliseconds of real time between two steps of the clock while something is awaited. */
const STEP_MS = 1
/** Turns of the event loop in a row without file work after which the store has settled, and the most that are taken. */
const QUIET_TURNS = 3
const MOST_TURNS = 100_000
/** Work that ends by itself: file calls, and callbacks of this turn or the next. */
const FILE_WORK = /^(FSReq|CloseReq|Immediate|TickObject)/

/**
 * A virtual clock for tests. It moves only while something is awaited through {@link during}, or by {@link pass}; in between
 * it stands still, so that a test sees every pending timer.
 */
export class WaitingTime {
  readonly clock = new VirtualClock(Date.now())
  /** Clock speeds of those who wait now. */
  readonly #paces = new Map<object, number>()
  #running: Promise<void> | undefined
  #advances: Promise<unknown> = Promise.resolve()

  /**
   * Lets time pass until the work is done: as much as really did, or `pace` times that. Several may wait at once; the clock
   * then moves once, at the highest pace.
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
      // The last one returns to a clock that stands still.
      if (this.#paces.size === 0) await running.catch(() => {})
    }
  }

  /**
   * Moves the clock `ms` milliseconds forward, timer by timer, and after each timer waits until the writes that it began, and
   * what they began in turn, are on the disk. Processes and sockets are not waited for: use {@link during} for what they answer.
   */
  pass(ms: number): Promise<void> {
    return this.#advance(ms, storeSettled)
  }

  async #run(): Promise<void> {
    let seen = performance.now()
    try {
      for (;;) {
        await new Promise(resolve => setTimeout(resolve, STEP_MS))
        if (this.#paces.size === 0) return
        const pace = Math.max(...this.#paces.values())
        // Whole milliseconds, as the system's wall clock has them; what is left counts for the next step.
        const step = Math.floor((performance.now() - seen) * pace)
        seen += step / pace
        await this.#advance(step)
      }
    } finally {
      this.#running = undefined
    }
  }

  /** One after the other: a clock cannot be advanced by two at once. */
  #advance(ms: number, settled?: () => Promise<unknown>): Promise<void> {
    const advance = this.#advances.then(() => this.clock.advance(ms, settled))
    this.#advances = advance.catch(() => {})
    return advance
  }
}

/** Resolves when no file work is under way and nothing is put off to the next turn. */
async function storeSettled(): Promise<void> {
  for (let quiet = 0, turns = 0; quiet < QUIET_TURNS && turns < MOST_TURNS; turns++) {
    await new Promise(resolve => setImmediate(resolve))
    quiet = process.getActiveResourcesInfo().some(name => FILE_WORK.test(name)) ? 0 : quiet + 1
  }
}
