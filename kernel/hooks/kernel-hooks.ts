import { HookMap } from 'tapable'
import type { Awaitable, Clock, Scope } from '../contract/basics.js'
import type { Contribution, Hook, Report, Tapper } from '../contract/hook.js'
import type {
  Change,
  Encode,
  Exchange,
  Handled,
  Identified,
  Incoming,
  KernelTaps,
  Leaving,
  ReplyCheck,
  Written,
} from '../contract/kernel-hooks.js'
import type { RecordScope } from '../contract/kind.js'
import type { Plugin, PluginState } from '../contract/plugin.js'
import type { Actor, RecordChange } from '../contract/record.js'
import type { Redactor } from '../contract/redact.js'
import type { Route } from '../contract/route.js'
import type { Tx } from '../contract/storage.js'
import type { RegistryToken } from '../contract/token.js'
import { Announce, Gate, Guard, Notify, Registry } from './index.js'
import { isActor } from './is-actor.js'
import { Tapped } from './tapped.js'

/** Milliseconds that a plugin's tap on a stage of the lifecycle has. The kernel's own taps bound their work themselves. */
const STAGE_MS = 30_000
/** Milliseconds that it has on a request. */
const REQUEST_MS = 5000
/** The same where no route matches: what is on its way is waited for. */
const UNROUTED_MS = 6000

/** Depth of the kernel's own taps: they run before those of every plugin, and no deadline cuts them. */
export const KERNEL_DEPTH = -1

/** Stands for every kind in `write`. */
export const ANY_KIND = '*'

/** Ends something, until the signal, in so many milliseconds. */
export type End = (signal: AbortSignal, ms: number) => Awaitable<void>

/**
 * Every stage of the kernel's life as a hook. The object is frozen: whoever taps cannot put another hook in the place of one.
 * Plugins never hold it; the host taps with what stands on their surfaces, so that an owner cannot be forged.
 */
export function kernelHooks(report: Report, clock: Clock) {
  const stage = { report, clock, deadlineMs: STAGE_MS }
  const request = { report, clock, deadlineMs: REQUEST_MS }
  return Object.freeze({
    /** What surfaces contribute, by the id of a registry. A tap that throws contributes nothing. */
    collect: new HookMap(id => new Registry<unknown>(id as string, report)),
    /** Who replaces registered values in all that leaves. */
    redact: new Registry<Redactor>('redact', report),
    /** Asked before anything that runs is released for a plugin. Fails closed. */
    check: new Gate<[Plugin]>('check', stage),
    /** Kinds and settings are set. */
    known: new Announce<[Change]>('known', report),
    /** A generation of routes is swapped in. */
    published: new Notify<[Change]>('published', stage),
    /** Doors are opened. Fails closed: the start ends. */
    open: new Gate<[]>('open', stage),
    /** TCP is served, where it is. */
    listening: new Notify<[]>('listening', stage),
    /** Boot reconcilers have run. */
    projected: new Notify<[Change]>('projected', stage),
    /** Background loops are started. */
    running: new Notify<[Change]>('running', stage),
    /** A plugin changed state after the boot, or failed. */
    changed: new Announce<[string, PluginState]>('changed', report),
    /** Requests are held, handlers drained, streams ended. */
    leaving: new Notify<[Leaving]>('leaving', stage),
    /** What ends before a shutdown goes on to the next phase, in so many milliseconds; all taps of a phase at once. */
    quiesce: new HookMap(phase => new Registry<End>(`quiesce ${String(phase)}`, report)),
    /** Who makes a request: an actor, or a refusal. Fails closed. */
    authenticate: new Gate<[Incoming], Actor>('authenticate', request, isActor),
    /** Whether a request for a route is served. Fails closed. */
    admit: new Gate<[Identified, Route]>('admit', request),
    /** What becomes of a request that no route matches. Fails closed. */
    unrouted: new Gate<[string], true>('unrouted', { ...request, deadlineMs: UNROUTED_MS }, answer => answer === true),
    /** Who checks what handlers reply. */
    reply: new Registry<ReplyCheck>('reply', report),
    /** Who writes the bodies of JSON replies. */
    encode: new Registry<Encode>('encode', report),
    /** A handler succeeded that may have changed something. */
    handled: new Notify<[Handled]>('handled', request),
    /** A request is over. */
    replied: new Announce<[Exchange]>('replied', report),
    /** Whether records may be bound to a scope. Fails closed. */
    scope: new Guard<[RecordScope]>('scope', report),
    /** Whether a record may be changed, by kind. Fails closed. */
    write: new HookMap(kind => new Guard<[RecordChange]>(`write ${String(kind)}`, report)),
    /** A record was written, in its transaction. What a tap throws aborts that. */
    written: new Announce<[Tx, Written]>('written', report, true),
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
    const hook: unknown = hooks[name as keyof typeof taps]
    if (!(hook instanceof Tapped)) throw new Error(`${tapper.owner} taps ${name}, which is no hook of the kernel`)
    if (fn) tap(hook, fn)
  }
  for (const [kind, guard] of Object.entries(write)) tap(hooks.write.for(kind), guard)
}
