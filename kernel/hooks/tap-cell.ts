import type { Clock, Timer } from '../contract/clock.js'
import type { Report } from '../contract/hook.js'

/** One tap. A call that is in progress when it is released finds it empty. */
export class TapCell<F> {
  fn: F | undefined
  /** Faults in a row. */
  faults = 0
  /** On the monotonic clock, in milliseconds; the tap is left out until then. */
  mutedUntil = 0
  #running = 0
  readonly #whenIdle: (() => void)[] = []

  constructor(
    readonly owner: string,
    readonly depth: number,
    fn: F,
  ) {
    this.fn = fn
  }

  /** Plan order: by depth, then by owner, then in order of registration. */
  follows(other: TapCell<F>): boolean {
    return this.depth === other.depth ? this.owner >= other.owner : this.depth > other.depth
  }

  /** A call of the tap began that does not end at once. */
  enter(): void {
    this.#running++
  }

  leave(): void {
    if (--this.#running === 0 && this.#whenIdle.length > 0) for (const wake of this.#whenIdle.splice(0)) wake()
  }

  /** Resolves when no call of the tap is running. */
  idle(): Promise<void> {
    return this.#running === 0 ? Promise.resolve() : new Promise(resolve => this.#whenIdle.push(resolve))
  }
}

/** What a hook whose taps may take time needs beside its name. */
export interface Guarding {
  readonly report: Report
  readonly clock: Clock
  /** Milliseconds that a tap has; then it counts as failed, whatever it does later. */
  readonly deadlineMs: number
}

/** How a call of a tap ended. */
export type Settle = (failed: boolean, value: unknown) => void

/** A call of a tap that returned a promise. It settles once: with its answer, its rejection, or as late. */
class PendingCall {
  timer: Timer | undefined
  settled = false

  constructor(
    private readonly cell: TapCell<unknown>,
    private readonly settle: Settle,
    /** Milliseconds. */
    readonly deadline: number,
  ) {
    cell.enter()
  }

  end(failed: boolean, value: unknown): void {
    if (this.settled) return
    this.settled = true
    this.timer?.cancel()
    this.cell.leave()
    this.settle(failed, value)
  }
}

/** Gives calls their deadline. A call that ends in its own turn of the event loop, as most do, costs no timer. */
export class Deadlines {
  /** Calls of this turn. */
  #fresh: PendingCall[] = []

  constructor(private readonly clock: Clock) {}

  watch(cell: TapCell<never>, work: PromiseLike<unknown>, settle: Settle, ms: number): void {
    const call = new PendingCall(cell as TapCell<unknown>, settle, ms)
    if (this.#fresh.length === 0) setImmediate(() => this.#arm())
    // Calls that follow each other within one turn, however many, are not kept for its end.
    else if (this.#fresh.at(-1)?.settled) this.#fresh.pop()
    this.#fresh.push(call)
    work.then(
      value => call.end(false, value),
      error => call.end(true, error),
    )
  }

  #arm(): void {
    const fresh = this.#fresh
    this.#fresh = []
    for (const call of fresh) {
      const { settled, deadline } = call
      if (settled || deadline === Infinity) continue
      call.timer = this.clock.timeout(deadline, () => call.end(true, new Error(`no end within ${deadline} ms`)))
    }
  }
}
