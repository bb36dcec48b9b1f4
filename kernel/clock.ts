import { performance } from 'node:perf_hooks'
import type { Clock, Timer } from './contract/basics.js'

// Node fires a longer timer after 1 ms.
const longestNodeTimer = 2 ** 31 - 1

/** The system's clock. */
export function systemClock(): Clock {
  const monotonic = () => performance.now()
  const timeout = (ms: number, fn: () => void, options: { readonly unref?: boolean } = {}): Timer => {
    const due = monotonic() + delay(ms)
    let handle: NodeJS.Timeout
    const arm = () => {
      // Node's timers count whole milliseconds from a time that is read once per loop, so one can fire up to 1 ms early.
      const fire = () => (monotonic() < due ? arm() : fn())
      handle = setTimeout(fire, Math.min(delay(Math.ceil(due - monotonic())), longestNodeTimer))
      if (options.unref) handle.unref()
    }
    arm()
    return { cancel: () => clearTimeout(handle) }
  }
  return { now: () => Date.now(), monotonic, timeout, sleep: (ms, signal) => sleepOn(timeout, ms, signal) }
}

/** The delay of a timer in milliseconds, never negative. */
export function delay(ms: number): number {
  if (Number.isNaN(ms)) throw new RangeError('a timer needs a number of milliseconds')
  return Math.max(0, ms)
}

/** The `sleep` of a clock with this `timeout`. */
export function sleepOn(
  timeout: (ms: number, fn: () => void) => Timer,
  ms: number,
  signal?: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const abort = () => {
      timer.cancel()
      reject(signal?.reason)
    }
    const timer = timeout(ms, () => {
      signal?.removeEventListener('abort', abort)
      resolve()
    })
    signal?.addEventListener('abort', abort, { once: true })
  })
}

/** Resolves after the remaining work of this turn of the event loop. */
export function turn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

/** Receives the outcome of some work: its value, or its error. */
export type Settle = (failed: boolean, value: unknown) => void

/** Work in progress. It settles once: with its value, its error, or as late. */
class Pending {
  timer: Timer | undefined
  settled = false

  constructor(
    readonly clock: Clock,
    readonly ms: number,
    private readonly settle: Settle,
  ) {}

  end(failed: boolean, value: unknown): void {
    if (this.settled) return
    this.settled = true
    this.timer?.cancel()
    this.settle(failed, value)
  }
}

/** Work that began in this turn of the event loop; timers are made at its end. */
let fresh: Pending[] = []

/**
 * Calls `settle` once, with the outcome of the work, or with an error after `ms` milliseconds; the work itself is not stopped. Work
 * that ends in the turn in which it began, as most does, needs no timer.
 */
export function watch(clock: Clock, ms: number, work: PromiseLike<unknown>, settle: Settle): void {
  const pending = new Pending(clock, ms, settle)
  if (fresh.length === 0) setImmediate(arm)
  // A long chain of short work in one turn must not fill the list.
  else if (fresh.at(-1)?.settled) fresh.pop()
  fresh.push(pending)
  work.then(
    value => pending.end(false, value),
    error => pending.end(true, error),
  )
}

/** Settles like `work`, or rejects after `ms` milliseconds; the work itself is not stopped. */
export function within<T>(clock: Clock, ms: number, work: PromiseLike<T>): Promise<T> {
  return new Promise((resolve, reject) =>
    watch(clock, ms, work, (failed, value) => (failed ? reject(value) : resolve(value as T))),
  )
}

function arm(): void {
  const batch = fresh
  fresh = []
  for (const pending of batch) {
    const { settled, clock, ms } = pending
    if (settled || ms === Infinity) continue
    pending.timer = clock.timeout(ms, () => pending.end(true, new Error(`no end within ${ms} ms`)))
  }
}
