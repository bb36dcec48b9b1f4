import { delay, sleepOn } from '../kernel/index.js'
import type { Clock, Timer } from '../kernel/plugin.js'

/** Consecutive turns of the event loop without work after which the store has settled, and the maximum number of turns. */
const QUIET_TURNS = 3
const MOST_TURNS = 100_000
/** Maximum number of turns with callbacks only: they may belong to a loop of the test that ends much later. */
const MOST_CALLBACK_TURNS = 500
/** File calls, which end by themselves. */
const FILE_WORK = /^(FSReq|CloseReq)/
/** Callbacks of this turn or the next. */
const CALLBACKS = /^(Immediate|TickObject)/

interface Waiting {
  readonly due: number
  readonly fn: () => void
}

/** A clock that moves only when advanced, so that a test covers months in moments. */
export class VirtualClock implements Clock {
  #elapsed = 0
  #wall: number
  #advancing = false
  /** The timers by due time; equal ones in the order in which they were set. */
  readonly #waiting: Waiting[] = []

  /** @param start initial value of `now()`, in milliseconds since 1970 */
  constructor(start = Date.UTC(2030, 0, 1)) {
    this.#wall = start
  }

  now(): number {
    return this.#wall + this.#elapsed
  }

  monotonic(): number {
    return this.#elapsed
  }

  timeout(ms: number, fn: () => void): Timer {
    const entry: Waiting = { due: this.#elapsed + delay(ms), fn }
    this.#waiting.splice(this.#firstAfter(entry.due), 0, entry)
    return {
      cancel: () => {
        const at = this.#waiting.indexOf(entry)
        if (at >= 0) this.#waiting.splice(at, 1)
      },
    }
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepOn((after, fn) => this.timeout(after, fn), ms, signal)
  }

  /** Number of pending timers. */
  get pending(): number {
    return this.#waiting.length
  }

  /**
   * Advances the clock by `ms` milliseconds: due timers fire in order, each at its own time, including new ones. Rejects with the
   * error of a timer; the clock then stays at that timer's time.
   * @param settled awaited before the first timer and after each; default: until the reactions of settled promises have run;
   *   {@link storeSettled} waits for the disk, which takes much longer where there are thousands of timers
   */
  async advance(ms: number, settled: () => Promise<unknown> = promisesSettled): Promise<void> {
    if (this.#advancing) throw new Error('the virtual clock is being advanced already; await that first')
    this.#advancing = true
    try {
      await settled()
      const target = this.#elapsed + delay(ms)
      for (;;) {
        const next = this.#waiting[0]
        this.#elapsed = Math.min(next?.due ?? target, target)
        if (next === undefined || next.due > target) break
        this.#waiting.shift()
        next.fn()
        await settled()
      }
    } finally {
      this.#advancing = false
    }
  }

  /** Moves the wall clock `ms` milliseconds forward or back, as an operator or a time server would; timers are not affected. */
  jump(ms: number): void {
    this.#wall += ms
  }

  #firstAfter(due: number): number {
    let low = 0
    let high = this.#waiting.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#waiting[middle]!.due <= due) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** Resolves when there is no file work and no callback for the next turn: what was written is on the disk. */
export async function storeSettled(): Promise<void> {
  let callbackTurns = 0
  for (let quiet = 0, turns = 0; quiet < QUIET_TURNS && turns < MOST_TURNS; turns++) {
    await new Promise(resolve => setImmediate(resolve))
    const active = process.getActiveResourcesInfo()
    const isBusy = (kind: RegExp) => active.some(name => kind.test(name))
    quiet = isBusy(FILE_WORK) || (isBusy(CALLBACKS) && callbackTurns++ < MOST_CALLBACK_TURNS) ? 0 : quiet + 1
  }
}

/** Resolves after two turns of the event loop: by then the callbacks of settled promises have run, and those that they queued. */
function promisesSettled(): Promise<void> {
  return new Promise(resolve => setImmediate(() => setImmediate(resolve)))
}
