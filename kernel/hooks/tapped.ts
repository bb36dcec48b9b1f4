import type { Hook as TapableHook } from 'tapable'
import { type Settle, watch } from '../clock.js'
import type { Clock } from '../contract/basics.js'
import { messageOf } from '../contract/errors.js'
import type { OwnHook, Report, Tapper } from '../contract/hook.js'
import { RUNS_FOR } from '../on-behalf.js'

/** One tap. Its release empties the cell, so that a call in progress skips it. */
export class TapCell<F> {
  fn: F | undefined
  /** Consecutive faults. */
  faults = 0
  /** Monotonic time in milliseconds until which the tap is muted. */
  mutedUntil = 0
  #running = 0
  readonly #whenIdle: (() => void)[] = []

  constructor(
    readonly owner: string,
    readonly depth: number,
    fn: F,
    readonly isDropIn: boolean,
  ) {
    this.fn = fn
  }

  get [RUNS_FOR](): string {
    return this.owner
  }

  /** Plan order: by depth, then by owner, then in order of registration. */
  follows(other: TapCell<F>): boolean {
    return this.depth === other.depth ? this.owner >= other.owner : this.depth > other.depth
  }

  /** Counts a call of the tap that returned a promise. */
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

/** The dependencies of a hook with asynchronous taps. */
export interface Guarding {
  readonly report: Report
  readonly clock: Clock
  /** Deadline of a tap in milliseconds; a later result is ignored and counts as a failure. */
  readonly deadlineMs: number
}

/** Consecutive faults after which an optional tap is muted. */
export const MUTED_AFTER = 5
const MUTE_MS = 30_000
const LONGEST_MUTE_MS = 600_000

/** The taps of a hook that are called: all, or only those of the program or of drop-ins. */
export type Whose = 'all' | 'program' | 'drop-ins'

/** The extra member of tapable's taps. */
export interface WithCell {
  // biome-ignore lint/suspicious/noExplicitAny: tapable types a hook by its arguments, the bus by its taps
  readonly cell: TapCell<any>
}
// biome-ignore lint/suspicious/noExplicitAny: see above
type AnyTapable = TapableHook<any, any, WithCell>

/**
 * A hook of tapable whose taps have an owner. The guard of a hook (attribution, deadline, mute, effect of a failure) is added by
 * the interceptor that tapable calls as each tap is registered. tapable has no untap and its compiled call is fixed, so after a
 * change the next call compiles a new hook with the taps in plan order; a call in progress keeps the old one.
 */
export abstract class Tapped<F, H extends AnyTapable> implements OwnHook<F> {
  readonly #cells: TapCell<F>[] = []
  #changes = 0
  readonly #compiled = new Map<Whose, H>()

  constructor(
    readonly name: string,
    protected readonly report: Report,
  ) {}

  tap(tapper: Tapper, fn: F): void {
    const cell = new TapCell(tapper.owner, tapper.depth, fn, tapper.isDropIn ?? false)
    tapper.scope.defer(`tap ${this.name}`, async () => {
      cell.fn = undefined
      this.#cells.splice(this.#cells.indexOf(cell), 1)
      this.#changed()
      await cell.idle()
    })
    this.#cells.splice(this.#cells.findLastIndex(other => cell.follows(other)) + 1, 0, cell)
    this.#changed()
  }

  /** Rises with every added or removed tap. */
  get changes(): number {
    return this.#changes
  }

  #changed(): void {
    this.#compiled.clear()
    this.#changes++
  }

  /** Number of current taps. */
  get size(): number {
    return this.#cells.length
  }

  isUsed(): boolean {
    return this.#cells.length > 0
  }

  has(owner: string): boolean {
    return this.#cells.some(cell => cell.owner === owner)
  }

  /** An empty hook of tapable. */
  protected abstract readonly make: () => H

  /** The guarded function that tapable calls instead of the tap. */
  protected abstract guarded(cell: TapCell<F>): (...args: never[]) => unknown

  /** How taps are registered with tapable. */
  protected readonly type: 'sync' | 'async' = 'sync'

  protected get hook(): H {
    return this.hookOf('all')
  }

  protected hookOf(whose: Whose): H {
    const hook = this.#compiled.get(whose) ?? this.#compile(whose)
    this.#compiled.set(whose, hook)
    return hook
  }

  #compile(whose: Whose): H {
    const hook = this.make()
    const cells = this.#cells.filter(cell => whose === 'all' || cell.isDropIn === (whose === 'drop-ins'))
    hook.intercept({ register: tap => ({ ...tap, type: this.type, fn: this.guarded(tap.cell) }) })
    for (const cell of cells) hook.tap({ name: cell.owner, cell }, cell.fn as never)
    return hook
  }

  protected blame(owner: string, error: unknown): void {
    this.report({ owner, hook: this.name, error })
  }
}

/** A hook with asynchronous taps, each within the deadline. */
export abstract class AsyncTapped<F extends (...args: never[]) => unknown, H extends AnyTapable> extends Tapped<F, H> {
  protected override readonly type = 'async'

  constructor(
    name: string,
    protected readonly guarding: Guarding,
  ) {
    super(name, guarding.report)
  }

  /**
   * Calls the tap. `settle` receives its answer (`undefined` after its release), its error, or the missed deadline. Taps of the
   * kernel itself (depth below 0) have no deadline.
   */
  protected bounded(cell: TapCell<F>, args: readonly unknown[], settle: Settle, ms = this.guarding.deadlineMs): void {
    let answer: unknown
    try {
      answer = cell.fn?.(...(args as never[]))
    } catch (error) {
      settle(true, error)
      return
    }
    if (isPromise(answer)) {
      cell.enter()
      watch(this.guarding.clock, cell.depth < 0 ? Infinity : ms, answer, (failed, value) => {
        cell.leave()
        settle(failed, value)
      })
    } else settle(false, answer)
  }

  /** Like {@link bounded}, for an optional tap: a fault is reported, and after the fifth in a row the tap is muted. */
  protected attempt(cell: TapCell<F>, args: readonly unknown[], done: (answer: unknown) => void): void {
    if (this.#isMuted(cell)) {
      done(undefined)
      return
    }
    this.bounded(cell, args, (failed, value) => {
      if (!failed) cell.faults = 0
      // A call that began before the tap was muted does not count again.
      else if (!this.#isMuted(cell)) this.#count(cell, value)
      done(failed ? undefined : value)
    })
  }

  #isMuted(cell: TapCell<F>): boolean {
    return cell.faults >= MUTED_AFTER && this.guarding.clock.monotonic() < cell.mutedUntil
  }

  #count(cell: TapCell<F>, error: unknown): void {
    cell.faults++
    if (cell.faults < MUTED_AFTER) {
      this.blame(cell.owner, error)
      return
    }
    const ms = Math.min(LONGEST_MUTE_MS, MUTE_MS * 2 ** (cell.faults - MUTED_AFTER))
    cell.mutedUntil = this.guarding.clock.monotonic() + ms
    const text = `${messageOf(error)}; after ${cell.faults} faults in a row it is skipped for ${ms / 1000} s`
    this.blame(cell.owner, new Error(text, { cause: error }))
  }
}

const isPromise = (answer: unknown): answer is PromiseLike<unknown> =>
  typeof (answer as PromiseLike<unknown> | undefined)?.then === 'function'
