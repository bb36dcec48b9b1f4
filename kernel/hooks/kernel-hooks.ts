import { HookMap } from 'tapable'
import type { Awaitable, Clock, Scope } from '../contract/basics.js'
import type { Contribution, Hook, HookEntry, Report, Tapper } from '../contract/hook.js'
import { type KernelTaps, kernelPoints, type Written } from '../contract/kernel-hooks.js'
import type { Tx } from '../contract/storage.js'
import type { RegistryToken } from '../contract/token.js'
import { Announce, hookFor, type Made, Registry } from './index.js'
import { Tapped } from './tapped.js'

/** Depth of the kernel's own taps: they run before those of every plugin, and no deadline cuts them. */
export const KERNEL_DEPTH = -1

/** Stands for every kind in `write`. */
export const ANY_KIND = '*'

/** Ends something, until the signal, in so many milliseconds. */
export type End = (signal: AbortSignal, ms: number) => Awaitable<void>

type MadeOf<T> = { readonly [K in keyof T]: T[K] extends HookEntry<infer C> ? Made<C> : never }

/**
 * The hooks of {@link kernelPoints} for one kernel. The object is frozen: no hook can take the place of another. Plugins never
 * hold it; the host taps with what stands on their surfaces, so that an owner cannot be forged.
 */
export function kernelHooks(report: Report, clock: Clock) {
  const made = Object.entries(kernelPoints).map(([member, entry]) => [
    member,
    hookFor<unknown>(entry, entry.name, report, clock),
  ])
  return Object.freeze({
    ...(Object.fromEntries(made) as MadeOf<typeof kernelPoints>),
    /** The only one whose taps throw at its caller: what a tap throws aborts the transaction. */
    written: new Announce<[Tx, Written]>(kernelPoints.written.name, report, true),
    /** What surfaces contribute, by the id of a registry. A tap that throws contributes nothing. */
    collect: new HookMap(id => new Registry<unknown>(id as string, report)),
    /** What ends before a shutdown goes on to the next phase, in so many milliseconds; all taps of a phase at once. */
    quiesce: new HookMap(phase => new Registry<End>(`quiesce ${String(phase)}`, report)),
  })
}

export type KernelHooks = ReturnType<typeof kernelHooks>

/** Everything contributed now to a registry, in plan order. */
export function collected<T>(
  { collect }: Pick<KernelHooks, 'collect'>,
  { registry }: RegistryToken<T>,
): Contribution<T>[] {
  return collect.for(registry).collect() as Contribution<T>[]
}

/** Who taps for the kernel itself. */
export const kernelTapper = (scope: Scope): Tapper => ({ owner: 'kernel', depth: KERNEL_DEPTH, scope })

/** Taps the hooks of the kernel with functions of a plugin, bound to its service. Throws for one that there is not. */
export function tapKernel<S>(
  hooks: KernelHooks,
  tapper: Tapper,
  { write = {}, ...taps }: KernelTaps<S>,
  self: S,
): void {
  const tap = (hook: Hook<never>, fn: (self: S, ...args: never[]) => unknown) =>
    hook.tap(tapper, fn.bind(undefined, self) as never)
  for (const [name, fn] of Object.entries(taps)) {
    // Of `apiVersion: 1`: a contribution, see contributionsOf.
    if (name === 'redact') continue
    const hook: unknown = hooks[name as keyof typeof taps]
    if (!(hook instanceof Tapped)) throw new Error(`${tapper.owner} taps ${name}, which is no hook of the kernel`)
    if (fn) tap(hook, fn)
  }
  for (const [kind, guard] of Object.entries(write)) tap(hooks.write.for(kind), guard)
}
