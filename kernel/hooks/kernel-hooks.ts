import { HookMap } from 'tapable'
import type { Clock, Scope } from '../contract/basics.js'
import type * as contract from '../contract/hook.js'
import type { Contribution, Hook, HookEntry, Report, Tapper } from '../contract/hook.js'
import { type KernelTaps, kernelPoints, type Written } from '../contract/kernel-hooks.js'
import type { RecordChange } from '../contract/record.js'
import type { Tx } from '../contract/storage.js'
import type { RegistryToken } from '../contract/token.js'
import { Announce, type Gate, hookFor, Registry } from './index.js'
import { Tapped } from './tapped.js'

/** Depth of the kernel's own taps: they run before those of every plugin, without a deadline. */
export const KERNEL_DEPTH = -1

/** The kernel also uses members of its gates that are not in the contract. */
type Made<C> = C extends contract.Gate<infer A, infer R> ? Gate<A, R> : C
type MadeOf<T> = { readonly [K in keyof T]: T[K] extends HookEntry<infer C> ? Made<C> : never }

/**
 * The hooks of {@link kernelPoints} for one kernel. The object is frozen, so that no hook can be replaced. Plugins never hold it:
 * the host taps on their behalf, so that an owner cannot be forged.
 */
export function kernelHooks(report: Report, clock: Clock) {
  const made = Object.entries(kernelPoints).map(([member, entry]) => [
    member,
    hookFor<unknown>(entry, entry.name, report, clock),
  ])
  return Object.freeze({
    ...(Object.fromEntries(made) as MadeOf<typeof kernelPoints>),
    /** Strict: an error of a tap reaches the caller and aborts the transaction. */
    written: new Announce<[Tx, Written]>(kernelPoints.written.name, report, true),
    /** Entries of surfaces, by registry id. A tap that throws contributes nothing. */
    collect: new HookMap(id => new Registry<unknown>(id as string, report)),
  })
}

export type KernelHooks = ReturnType<typeof kernelHooks>

/** All current entries of a registry, in plan order. */
export function collected<T>(
  { collect }: Pick<KernelHooks, 'collect'>,
  { registry }: RegistryToken<T>,
): Contribution<T>[] {
  return collect.for(registry).collect() as Contribution<T>[]
}

/** The kernel as the owner of taps. */
export const kernelTapper = (scope: Scope): Tapper => ({ owner: 'kernel', depth: KERNEL_DEPTH, scope })

/** Taps hooks of the kernel with functions of a plugin, bound to its service. Throws for an unknown hook. */
export function tapKernel<S>(
  hooks: KernelHooks,
  tapper: Tapper,
  { write: { '*': any, ...kinds } = {}, ...taps }: KernelTaps<S>,
  service: S,
): void {
  const tap = (hook: Hook<never>, fn: (service: S, ...args: never[]) => unknown) =>
    hook.tap(tapper, fn.bind(undefined, service) as never)
  for (const [name, fn] of Object.entries(taps)) {
    const hook: unknown = hooks[name as keyof typeof taps]
    if (!(hook instanceof Tapped)) throw new Error(`${tapper.owner} taps ${name}, which is not a hook of the kernel`)
    if (fn) tap(hook, fn)
  }
  if (any) tap(hooks.write, any)
  for (const [kind, guard] of Object.entries(kinds)) {
    tap(hooks.write, (self, t: Tx, change: RecordChange) =>
      (change.verb === 'put' ? change.after : change.before).kind === kind ? guard(self, t, change) : undefined,
    )
  }
}
