import type { Awaitable } from '../contract/awaitable.js'
import type { Clock } from '../contract/clock.js'
import { messageOf } from '../contract/errors.js'
import type { Hook, Report, Tapper } from '../contract/hook.js'
import { within } from '../scope.js'

/** What a hook whose taps may take time needs beside its name. */
export interface Guarding {
  readonly report: Report
  readonly clock: Clock
  /** Milliseconds that a tap has; then it counts as failed, whatever it does later. */
  readonly deadlineMs: number
}

/** Faults in a row after which a tap that nobody depends on is left out for a while. */
export const MUTED_AFTER = 5
const MUTE_MS = 30_000
const LONGEST_MUTE_MS = 600_000

/** One tap. A call that is in progress when it is released finds it empty. */
export class Cell<F> {
  fn: F | undefined
  readonly running = new Set<Promise<unknown>>()
  faults = 0
  mutedUntil = 0

  constructor(
    readonly owner: string,
    readonly depth: number,
    fn: F,
  ) {
    this.fn = fn
  }

  follows(other: Cell<F>): boolean {
    return this.depth === other.depth ? this.owner >= other.owner : this.depth > other.depth
  }
}

/**
 * A hook of tapable behind cells in plan order. tapable has no untap and its compiled call is fixed, so a change of taps
 * compiles another one at the next call; a call in progress keeps its own.
 */
export abstract class Tapped<F, H> implements Hook<F> {
  readonly #cells: Cell<F>[] = []
  #compiled: H | undefined

  constructor(
    readonly name: string,
    protected readonly report: Report,
  ) {}

  tap(tapper: Tapper, fn: F): void {
    const cell = new Cell(tapper.owner, tapper.depth, fn)
    tapper.scope.defer(`tap ${this.name}`, async () => {
      cell.fn = undefined
      this.#cells.splice(this.#cells.indexOf(cell), 1)
      this.#compiled = undefined
      await Promise.allSettled(cell.running)
    })
    this.#cells.splice(this.#cells.findLastIndex(other => cell.follows(other)) + 1, 0, cell)
    this.#compiled = undefined
  }

  protected get hook(): H {
    this.#compiled ??= this.compile(this.#cells)
    return this.#compiled
  }

  protected abstract compile(cells: readonly Cell<F>[]): H

  protected blame(cell: Cell<F>, error: unknown): void {
    this.report({ owner: cell.owner, hook: this.name, error })
  }
}

/** A hook whose taps may take time, each as long as the deadline. */
export abstract class AsyncTapped<F, H> extends Tapped<F, H> {
  constructor(
    name: string,
    protected readonly guarding: Guarding,
  ) {
    super(name, guarding.report)
  }

  /** What the tap says, `undefined` when it has gone; throws what it throws, or that it is late. */
  protected async bounded<R>(cell: Cell<F>, call: (fn: F) => Awaitable<R>): Promise<R | undefined> {
    if (!cell.fn) return undefined
    const answer = call(cell.fn)
    if (typeof (answer as PromiseLike<R> | undefined)?.then !== 'function') return answer
    const work = within(this.guarding.clock, this.guarding.deadlineMs, answer as PromiseLike<R>)
    cell.running.add(work)
    try {
      return await work
    } finally {
      cell.running.delete(work)
    }
  }

  /** The same for a tap that others can do without: a fault is reported, and from the fifth in a row on it is left out. */
  protected async attempt<R>(cell: Cell<F>, call: (fn: F) => Awaitable<R>): Promise<R | undefined> {
    const { clock } = this.guarding
    if (cell.faults >= MUTED_AFTER && clock.monotonic() < cell.mutedUntil) return undefined
    try {
      const answer = await this.bounded(cell, call)
      cell.faults = 0
      return answer
    } catch (error) {
      // One that was under way when the tap was muted tells nothing new.
      if (cell.faults < MUTED_AFTER || clock.monotonic() >= cell.mutedUntil) this.#count(cell, error)
      return undefined
    }
  }

  #count(cell: Cell<F>, error: unknown): void {
    cell.faults++
    if (cell.faults < MUTED_AFTER) {
      this.blame(cell, error)
      return
    }
    const ms = Math.min(LONGEST_MUTE_MS, MUTE_MS * 2 ** (cell.faults - MUTED_AFTER))
    cell.mutedUntil = this.guarding.clock.monotonic() + ms
    const text = `${messageOf(error)}; after ${cell.faults} faults in a row it is left out for ${ms / 1000} s`
    this.blame(cell, new Error(text, { cause: error }))
  }
}
