import { AsyncSeriesBailHook, AsyncSeriesHook, AsyncSeriesWaterfallHook, SyncBailHook, SyncHook } from 'tapable'
import * as v from 'valibot'
import type { Clock } from '../contract/basics.js'
import { Fault, messageOf } from '../contract/errors.js'
import type * as contract from '../contract/hook.js'
import type {
  Contribution,
  GateTap,
  GuardTap,
  HookEntry,
  HookFactory,
  NotifyTap,
  PipelineTap,
  Report,
} from '../contract/hook.js'
import { isDropIn } from '../contract/plugin.js'
import type { Tx } from '../contract/storage.js'
import { issueLine } from '../kit/issue-text.js'
import { AsyncTapped, type Guarding, type TapCell, Tapped, type Whose, type WithCell } from './tapped.js'

/** Default deadline of a tap, in milliseconds. */
const TAP_MS = 5000

type Collect<T> = (owner: string, entry: T) => void
type Done<R> = (error: null, answer?: R) => void

/** A registry collects by calling its hook each time. Nothing is ever unregistered, since taps end with their scope. */
export class Registry<T> extends Tapped<() => readonly T[], SyncHook<[Collect<T>], void, WithCell>> {
  /** All current entries, in plan order, then in order of registration. */
  collect(): Contribution<T>[] {
    const all: Contribution<T>[] = []
    this.hook.call((owner, entry) => all.push({ owner, entry }))
    return all
  }

  #entry: v.GenericSchema | undefined
  /** Checked entries of drop-ins, with the result. */
  #judged = new WeakMap<object, boolean>()

  /**
   * Sets the schema for entries of drop-ins. Entries of the program are checked by a test of the package; at boot that would take
   * time.
   */
  expect(entry: v.GenericSchema): void {
    this.#entry = entry
    this.#judged = new WeakMap()
  }

  protected readonly make = () => new SyncHook<[Collect<T>], void, WithCell>(['collect'])

  #accepts(owner: string, entry: unknown): boolean {
    if (!this.#entry) return true
    const key = typeof entry === 'object' && entry !== null ? entry : undefined
    const known = key && this.#judged.get(key)
    if (known !== undefined) return known
    const wrong = problemOf(this.#entry, entry)
    if (key) this.#judged.set(key, wrong === undefined)
    if (wrong !== undefined) this.blame(owner, new TypeError(`an entry of ${this.name} is ignored: ${wrong}`))
    return wrong === undefined
  }

  protected guarded(cell: TapCell<() => readonly T[]>) {
    return (collect: Collect<T>) => {
      try {
        for (const entry of cell.fn?.() ?? [])
          if (!cell.isDropIn || this.#accepts(cell.owner, entry)) collect(cell.owner, entry)
      } catch (error) {
        this.blame(cell.owner, error)
      }
    }
  }
}

/** Why a value does not match; undefined when it does. A value that throws while it is read does not match. */
function problemOf(schema: v.GenericSchema, value: unknown): string | undefined {
  try {
    const { issues } = v.safeParse(schema, value)
    return issues?.map(issue => `${issueLine(issue, 'the entry')}`).join('; ')
  } catch (error) {
    return messageOf(error)
  }
}

/** Makes the hook of a table entry. `name` appears in faults and logs. */
export function hookFor<C>(entry: HookEntry<C>, name: string, report: Report, clock: Clock): C {
  const { kind, deadlineMs = TAP_MS, isAnswer } = entry
  const guarding = { report, clock, deadlineMs }
  const make = {
    notify: () => new Notify(name, guarding),
    announce: () => new Announce(name, report),
    pipeline: () => new Pipeline(name, guarding),
    gate: () => new Gate(name, guarding, isAnswer),
    guard: () => new Guard(name, report),
  }
  return make[kind]() as C
}

/** Makes the hooks of one plugin, each named `<plugin>.<hook>`. Their entries are added to `made`. */
export function hookFactory(owner: string, report: Report, clock: Clock, made: HookEntry<unknown>[]): HookFactory {
  const make = <C>(entry: HookEntry<C>) => {
    made.push(entry)
    return hookFor(entry, `${owner}.${entry.name}`, report, clock)
  }
  const one = <C>(kind: HookEntry<C>['kind'], name: string, options: contract.HookOptions<never> = {}) =>
    make({ kind, name, summary: '', ...options } as HookEntry<C>) as never
  return {
    of: table => Object.fromEntries(Object.entries(table).map(([member, entry]) => [member, make(entry)])) as never,
    notify: (name, options) => one('notify', name, options),
    pipeline: (name, options) => one('pipeline', name, options),
    gate: (name, options) => one('gate', name, options as contract.HookOptions<never>),
    guard: name => one('guard', name),
  }
}

/** See the contract. */
export class Notify<A extends readonly unknown[]>
  extends AsyncTapped<NotifyTap<A>, AsyncSeriesHook<[A], WithCell>>
  implements contract.Notify<A>
{
  call(...args: A): Promise<void> {
    return this.isUsed() ? this.hook.promise(args) : Promise.resolve()
  }

  protected readonly make = () => new AsyncSeriesHook<[A], WithCell>(['args'])

  protected guarded(cell: TapCell<NotifyTap<A>>) {
    return (args: A, done: Done<void>) => this.attempt(cell, args, () => done(null))
  }
}

type AnnounceTap<A extends readonly unknown[]> = (...args: A) => void

/** A synchronous notification. A tap that throws is reported and the next one runs; with `isStrict` the caller gets the error. */
export class Announce<A extends readonly unknown[]> extends Tapped<AnnounceTap<A>, SyncHook<[A], void, WithCell>> {
  protected readonly make = () => new SyncHook<[A], void, WithCell>(['args'])

  constructor(
    name: string,
    report: Report,
    private readonly isStrict = false,
  ) {
    super(name, report)
  }

  call(...args: A): void {
    this.hook.call(args)
  }

  protected guarded(cell: TapCell<AnnounceTap<A>>) {
    return (args: A) => {
      try {
        cell.fn?.(...args)
      } catch (error) {
        // A strict tap may refuse with a fault, which is not a failure of the tap.
        if (!(this.isStrict && error instanceof Fault)) this.blame(cell.owner, error)
        if (this.isStrict) throw attributed(error, cell.owner, `in ${this.name}`)
      }
    }
  }
}

/** See the contract. */
export class Pipeline<V, A extends readonly unknown[] = []>
  extends AsyncTapped<PipelineTap<V, A>, AsyncSeriesWaterfallHook<[V, A], V, WithCell>>
  implements contract.Pipeline<V, A>
{
  run(value: V, ...args: A): Promise<V> {
    return this.hook.promise(value, args)
  }

  protected readonly make = () => new AsyncSeriesWaterfallHook<[V, A], V, WithCell>(['value', 'args'])

  protected guarded(cell: TapCell<PipelineTap<V, A>>) {
    return (value: V, args: A, done: Done<V>) =>
      this.attempt(cell, [value, ...args], next => done(null, next === undefined ? value : (next as V)))
  }
}

/** See the contract. With `isAnswer`, taps may also return answers that are no refusal. */
export class Gate<A extends readonly unknown[], R = never>
  extends AsyncTapped<GateTap<A, R>, AsyncSeriesBailHook<[A], Fault | R, WithCell>>
  implements contract.Gate<A, R>
{
  constructor(
    name: string,
    guarding: Guarding,
    private readonly isAnswer: (value: unknown) => value is R = (_): _ is R => false,
  ) {
    super(name, guarding)
  }

  ask(...args: A): Promise<Fault | R | undefined> {
    return this.hook.promise(args)
  }

  /** Like {@link ask}; `done` is called in the same turn when no tap has to wait. */
  askNow(args: A, done: (answer: Fault | R | undefined) => void, whose: Whose = 'all'): void {
    this.hookOf(whose).callAsync(args, (_, answer) => done(answer))
  }

  protected readonly make = () => new AsyncSeriesBailHook<[A], Fault | R, WithCell>(['args'])

  protected guarded(cell: TapCell<GateTap<A, R>>) {
    return (args: A, done: Done<Fault | R>) =>
      this.bounded(cell, args, (failed, value) => {
        const isAnswer = !failed && this.isAnswer(value)
        done(null, isAnswer ? value : decided(failed, value, cell.owner, this.name, this.report))
      })
  }
}

/** See the contract. */
export class Guard<A extends readonly unknown[]>
  extends Tapped<GuardTap<A>, SyncBailHook<[Tx, A], Fault | undefined, WithCell>>
  implements contract.Guard<A>
{
  check(t: Tx, ...args: A): void {
    const refused = this.hook.call(t, args)
    if (refused) throw refused
  }

  protected readonly make = () => new SyncBailHook<[Tx, A], Fault | undefined, WithCell>(['t', 'args'])

  protected guarded(cell: TapCell<GuardTap<A>>) {
    return (t: Tx, args: A): Fault | undefined => {
      let answer: unknown
      try {
        answer = cell.fn?.(t, ...args)
      } catch (error) {
        return decided(true, error, cell.owner, this.name, this.report)
      }
      return decided(false, answer, cell.owner, this.name, this.report)
    }
  }
}

/** The decision of one tap. Only `undefined` allows: any other answer, even null, refuses. */
function decided(failed: boolean, value: unknown, owner: string, hook: string, report: Report): Fault | undefined {
  if (!failed && (value === undefined || value instanceof Fault)) return value
  // The promise is refused as an answer: its rejection must not become an unhandled one.
  if (value instanceof Promise) value.catch(() => {})
  const error = failed
    ? value
    : new TypeError('a gate or guard returns a declared answer, a fault or undefined; a guard returns it synchronously')
  report({ owner, hook, error })
  return attributed(error, owner, `to decide ${hook}`)
}

/** The error that a caller sees when a tap fails: it names the plugin, and the command that shows or disables it. */
function attributed(error: unknown, owner: string, where: string): Fault {
  if (error instanceof Fault) return error
  const next = isDropIn(owner) ? `svc extension disable ${owner}` : `svc plugin show ${owner}`
  return new Fault('hook_failed', 500, `${owner} failed ${where}: ${messageOf(error)}`, { cause: error, next })
}
