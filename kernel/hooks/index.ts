import { AsyncSeriesBailHook, AsyncSeriesHook, AsyncSeriesWaterfallHook, SyncBailHook, SyncHook } from 'tapable'
import { Fault, messageOf } from '../errors.js'
import type { Scope } from '../scope.js'
import type { Tx } from '../store/index.js'

/** Who taps: the owner's name, its rank in the plan (taps run in that order) and the scope that takes the tap back. */
export interface Tapper {
  readonly owner: string
  readonly rank: number
  readonly scope: Scope
}

/** The side of a hook that others see: it can be tapped, not called. */
export interface Hook<F> {
  readonly name: string
  tap(tapper: Tapper, fn: F): void
}

/** Told of every tap that failed: whose, on which hook, how. */
export type Report = (fault: { owner: string; hook: string; error: unknown }) => void

/** tapable has no untap, so what is tapped is a cell; releasing the tapper empties it, and its next tap fills it again. */
class Cell<F> {
  fn: F | undefined
  constructor(
    readonly owner: string,
    readonly rank: number,
  ) {}
}

class Cells<F> {
  readonly #cells: Cell<F>[] = []

  constructor(readonly hook: string) {}

  /** Hands the cell to `install` only when it is new: a refilled cell keeps its place, so reloading changes no order. */
  fill(tapper: Tapper, fn: F, install: (cell: Cell<F>) => void): void {
    let cell = this.#cells.find(c => c.fn === undefined && c.owner === tapper.owner && c.rank === tapper.rank)
    if (cell) cell.fn = fn
    else {
      cell = new Cell<F>(tapper.owner, tapper.rank)
      cell.fn = fn
      this.#cells.push(cell)
      install(cell)
    }
    const filled = cell
    tapper.scope.defer(`tap ${this.hook}`, () => {
      filled.fn = undefined
    })
  }
}

const at = (cell: Cell<unknown>) => ({ name: cell.owner, stage: cell.rank })

/** One entry of a registry with the plugin that contributed it. */
export interface Contribution<T> {
  readonly owner: string
  readonly entry: T
}

/** A registry is what one gets by calling its hook again: nothing is ever unregistered, taps go with their scope. */
export class Registry<T> {
  readonly #hook = new SyncHook<[(owner: string, entry: T) => void]>(['collect'])
  readonly #cells: Cells<() => readonly T[]>

  constructor(
    readonly name: string,
    private readonly report: Report,
  ) {
    this.#cells = new Cells(name)
  }

  contribute(tapper: Tapper, entries: () => readonly T[]): void {
    this.#cells.fill(tapper, entries, cell =>
      this.#hook.tap(at(cell), collect => {
        if (!cell.fn) return
        try {
          for (const entry of cell.fn()) collect(cell.owner, entry)
        } catch (error) {
          this.report({ owner: cell.owner, hook: this.name, error })
        }
      }),
    )
  }

  /** Everything contributed now, in plan order, then in order of registration. */
  collect(): Contribution<T>[] {
    const all: Contribution<T>[] = []
    this.#hook.call((owner, entry) => all.push({ owner, entry }))
    return all
  }
}

/** Something happened. A tap that fails is reported; the next runs. */
export class Notify<A extends readonly unknown[]> implements Hook<(...args: A) => unknown> {
  readonly #hook = new AsyncSeriesHook<[A]>(['args'])
  readonly #cells: Cells<(...args: A) => unknown>

  constructor(
    readonly name: string,
    private readonly report: Report,
  ) {
    this.#cells = new Cells(name)
  }

  tap(tapper: Tapper, fn: (...args: A) => unknown): void {
    this.#cells.fill(tapper, fn, cell =>
      this.#hook.tapPromise(at(cell), async args => {
        try {
          await cell.fn?.(...args)
        } catch (error) {
          this.report({ owner: cell.owner, hook: this.name, error })
        }
      }),
    )
  }

  async call(...args: A): Promise<void> {
    await this.#hook.promise(args)
  }
}

/** Hands on a changed value. `undefined` means "no opinion"; when a tap fails the previous value stays. */
export class Pipeline<V, A extends readonly unknown[] = []>
  implements Hook<(value: V, ...args: A) => V | undefined | Promise<V | undefined>>
{
  readonly #hook = new AsyncSeriesWaterfallHook<[V, A]>(['value', 'args'])
  readonly #cells: Cells<(value: V, ...args: A) => V | undefined | Promise<V | undefined>>

  constructor(
    readonly name: string,
    private readonly report: Report,
  ) {
    this.#cells = new Cells(name)
  }

  tap(tapper: Tapper, fn: (value: V, ...args: A) => V | undefined | Promise<V | undefined>): void {
    this.#cells.fill(tapper, fn, cell =>
      this.#hook.tapPromise(at(cell), async (value, args) => {
        try {
          return (await cell.fn?.(value, ...args)) ?? value
        } catch (error) {
          this.report({ owner: cell.owner, hook: this.name, error })
          return value
        }
      }),
    )
  }

  run(value: V, ...args: A): Promise<V> {
    return this.#hook.promise(value, args) as Promise<V>
  }
}

/** May it happen, asked of those who may have to wait. A tap refuses by returning a fault; one that fails refuses too. */
export class Gate<A extends readonly unknown[]> implements Hook<(...args: A) => Promise<Fault | undefined>> {
  readonly #hook = new AsyncSeriesBailHook<[A], Fault>(['args'])
  readonly #cells: Cells<(...args: A) => Promise<Fault | undefined>>

  constructor(
    readonly name: string,
    private readonly report: Report,
  ) {
    this.#cells = new Cells(name)
  }

  tap(tapper: Tapper, fn: (...args: A) => Promise<Fault | undefined>): void {
    this.#cells.fill(tapper, fn, cell =>
      this.#hook.tapPromise(at(cell), async args => {
        try {
          // `null` would bail a bail hook: only a fault refuses.
          return ((await cell.fn?.(...args)) ?? undefined) as Fault
        } catch (error) {
          return refusal(this.report, cell.owner, this.name, error)
        }
      }),
    )
  }

  /** The first refusal, or nothing. */
  ask(...args: A): Promise<Fault | undefined> {
    return this.#hook.promise(args)
  }
}

/** May it happen, decided inside the transaction, which taps may read through. A promise is an error: it fails closed. */
export class Guard<A extends readonly unknown[]> implements Hook<(t: Tx, ...args: A) => Fault | undefined> {
  readonly #hook = new SyncBailHook<[Tx, A], Fault>(['t', 'args'])
  readonly #cells: Cells<(t: Tx, ...args: A) => Fault | undefined>

  constructor(
    readonly name: string,
    private readonly report: Report,
  ) {
    this.#cells = new Cells(name)
  }

  tap(tapper: Tapper, fn: (t: Tx, ...args: A) => Fault | undefined): void {
    this.#cells.fill(tapper, fn, cell =>
      this.#hook.tap(at(cell), (t, args) => {
        try {
          const verdict: unknown = cell.fn?.(t, ...args)
          if (verdict === undefined || verdict === null) return undefined as unknown as Fault
          if (verdict instanceof Fault) return verdict
          throw new TypeError('a guard answers with a fault or undefined, at once')
        } catch (error) {
          return refusal(this.report, cell.owner, this.name, error)
        }
      }),
    )
  }

  /** Throws the first refusal. */
  check(t: Tx, ...args: A): void {
    const verdict = this.#hook.call(t, args)
    if (verdict) throw verdict
  }
}

function refusal(report: Report, owner: string, hook: string, error: unknown): Fault {
  report({ owner, hook, error })
  if (error instanceof Fault) return error
  return new Fault('hook_failed', 500, `${owner} failed to decide ${hook}: ${messageOf(error)}`, { cause: error })
}
