import { AsyncSeriesBailHook, AsyncSeriesHook, AsyncSeriesWaterfallHook, SyncBailHook, SyncHook } from 'tapable'
import type { Clock } from '../contract/clock.js'
import type { Tx } from '../contract/db.js'
import { Fault, messageOf } from '../contract/errors.js'
import type * as contract from '../contract/hook.js'
import type {
  Contribution,
  GateTap,
  GuardTap,
  HookFactory,
  HookOptions,
  NotifyTap,
  PipelineTap,
  Report,
} from '../contract/hook.js'
import { AsyncTapped, type Cell, Tapped } from './taps.js'

/** Milliseconds that a tap has where its hook says nothing else. */
const TAP_MS = 5000

/** A registry is what one gets by calling its hook again: nothing is ever unregistered, taps go with their scope. */
export class Registry<T> extends Tapped<() => readonly T[], SyncHook<[(owner: string, entry: T) => void]>> {
  /** Everything contributed now, in plan order, then in order of registration. */
  collect(): Contribution<T>[] {
    const all: Contribution<T>[] = []
    this.hook.call((owner, entry) => all.push({ owner, entry }))
    return all
  }

  protected override compile(cells: readonly Cell<() => readonly T[]>[]) {
    const hook = new SyncHook<[(owner: string, entry: T) => void]>(['collect'])
    for (const cell of cells) {
      hook.tap(cell.owner, collect => {
        try {
          for (const entry of cell.fn?.() ?? []) collect(cell.owner, entry)
        } catch (error) {
          this.blame(cell, error)
        }
      })
    }
    return hook
  }
}

/** Makes the hooks of one plugin, all with its name before theirs. */
export function hookFactory(owner: string, report: Report, clock: Clock): HookFactory {
  const guarding = ({ deadlineMs = TAP_MS }: HookOptions = {}) => ({ report, clock, deadlineMs })
  return {
    notify: (name, options) => new Notify(`${owner}.${name}`, guarding(options)),
    pipeline: (name, options) => new Pipeline(`${owner}.${name}`, guarding(options)),
    gate: (name, options) => new Gate(`${owner}.${name}`, guarding(options)),
    guard: name => new Guard(`${owner}.${name}`, report),
  }
}

/** Something happened. A tap that fails is reported; the next runs. */
export class Notify<A extends readonly unknown[]>
  extends AsyncTapped<NotifyTap<A>, AsyncSeriesHook<[A]>>
  implements contract.Notify<A>
{
  async call(...args: A): Promise<void> {
    await this.hook.promise(args)
  }

  protected override compile(cells: readonly Cell<NotifyTap<A>>[]) {
    const hook = new AsyncSeriesHook<[A]>(['args'])
    for (const cell of cells) {
      hook.tapPromise(cell.owner, async args => {
        await this.attempt(cell, fn => fn(...args))
      })
    }
    return hook
  }
}

/** Hands on a changed value. `undefined` means "no opinion", `null` is a value; when a tap fails the previous one stays. */
export class Pipeline<V, A extends readonly unknown[] = []> extends AsyncTapped<
  PipelineTap<V, A>,
  AsyncSeriesWaterfallHook<[V, A]>
> {
  run(value: V, ...args: A): Promise<V> {
    return this.hook.promise(value, args) as Promise<V>
  }

  protected override compile(cells: readonly Cell<PipelineTap<V, A>>[]) {
    const hook = new AsyncSeriesWaterfallHook<[V, A]>(['value', 'args'])
    for (const cell of cells) {
      hook.tapPromise(cell.owner, async (value, args) => {
        const next = await this.attempt(cell, fn => fn(value, ...args))
        return next === undefined ? value : next
      })
    }
    return hook
  }
}

/** May it happen, asked of those who may have to wait. A tap refuses by returning a fault; one that fails refuses too. */
export class Gate<A extends readonly unknown[]>
  extends AsyncTapped<GateTap<A>, AsyncSeriesBailHook<[A], Fault>>
  implements contract.Gate<A>
{
  /** The first refusal, or nothing. */
  ask(...args: A): Promise<Fault | undefined> {
    return this.hook.promise(args)
  }

  protected override compile(cells: readonly Cell<GateTap<A>>[]) {
    const hook = new AsyncSeriesBailHook<[A], Fault>(['args'])
    for (const cell of cells) {
      hook.tapPromise(cell.owner, async args => {
        try {
          return verdict(await this.bounded(cell, fn => fn(...args))) as Fault
        } catch (error) {
          return refusal(this.report, cell.owner, this.name, error)
        }
      })
    }
    return hook
  }
}

/** May it happen, decided inside the transaction, which taps may read through. A promise is an error: it fails closed. */
export class Guard<A extends readonly unknown[]>
  extends Tapped<GuardTap<A>, SyncBailHook<[Tx, A], Fault>>
  implements contract.Guard<A>
{
  /** Throws the first refusal. */
  check(t: Tx, ...args: A): void {
    const refused = this.hook.call(t, args)
    if (refused) throw refused
  }

  protected override compile(cells: readonly Cell<GuardTap<A>>[]) {
    const hook = new SyncBailHook<[Tx, A], Fault>(['t', 'args'])
    for (const cell of cells) {
      hook.tap(cell.owner, (t, args) => {
        try {
          return verdict(cell.fn?.(t, ...args)) as Fault
        } catch (error) {
          return refusal(this.report, cell.owner, this.name, error)
        }
      })
    }
    return hook
  }
}

/** Anything else is no answer, `null` too: whoever means "yes" says nothing. */
function verdict(answer: unknown): Fault | undefined {
  if (answer === undefined || answer instanceof Fault) return answer
  // Nobody waits for it any more.
  if (answer instanceof Promise) answer.catch(() => {})
  throw new TypeError('a gate or guard answers with a fault or undefined, a guard at once')
}

function refusal(report: Report, owner: string, hook: string, error: unknown): Fault {
  report({ owner, hook, error })
  if (error instanceof Fault) return error
  return new Fault('hook_failed', 500, `${owner} failed to decide ${hook}: ${messageOf(error)}`, { cause: error })
}
