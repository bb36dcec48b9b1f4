import { HookMap } from 'tapable'
import { type Actor, isActor } from '../contract/actor.js'
import type { Clock } from '../contract/clock.js'
import type { Contribution, Report, Tapper } from '../contract/hook.js'
import type { PluginState } from '../contract/host-view.js'
import type { Change, Exchange, Identified, Incoming, KernelTaps, Leaving, Written } from '../contract/kernel-hooks.js'
import type { RecordScope } from '../contract/kind.js'
import type { Plugin } from '../contract/plugin.js'
import type { RecordChange } from '../contract/record.js'
import type { Route } from '../contract/route.js'
import type { Scope } from '../contract/scope.js'
import type { RegistryToken } from '../contract/token.js'
import { Announce, Concurrent, Gate, Guard, Notify, Registry, Strict } from './index.js'

/** Milliseconds that a plugin's tap on a stage of the lifecycle has. The kernel's own taps bound their work themselves. */
const STAGE_MS = 30_000
/** Milliseconds that it has on a request. */
const REQUEST_MS = 5000

/** Depth of the kernel's own taps: they run before those of every plugin, and no deadline cuts them. */
export const KERNEL_DEPTH = -1

/** Stands for every kind in `write`. */
export const ANY_KIND = '*'

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
    /** Asked before anything that runs is released for a plugin. Fails closed. */
    check: new Gate<[Plugin]>('check', stage),
    /** Kinds and settings are set. */
    known: new Announce<[Change]>('known', report),
    /** A generation of routes is swapped in. */
    published: new Notify<[Change]>('published', stage),
    /** Boot reconcilers have run. */
    projected: new Notify<[Change]>('projected', stage),
    /** Background loops are started. */
    running: new Notify<[Change]>('running', stage),
    /** A plugin changed state after the boot, or failed. */
    changed: new Announce<[string, PluginState]>('changed', report),
    /** Requests are held, handlers drained, streams ended. */
    leaving: new Notify<[Leaving]>('leaving', stage),
    /** What ends before a shutdown goes on to the next phase, in so many milliseconds; all taps of a phase at once. */
    quiesce: new HookMap(phase => new Concurrent<[AbortSignal, number]>(`quiesce ${String(phase)}`, stage)),
    /** Who makes a request: an actor, or a refusal. Fails closed. */
    authenticate: new Gate<[Incoming], Actor>('authenticate', request, isActor),
    /** Whether a request for a route is served. Fails closed. */
    admit: new Gate<[Identified, Route]>('admit', request),
    /** A request is over. */
    replied: new Announce<[Exchange]>('replied', report),
    /** Whether records may be bound to a scope. Fails closed. */
    scope: new Guard<[RecordScope]>('scope', report),
    /** Whether a record may be changed, by kind. Fails closed. */
    write: new HookMap(kind => new Guard<[RecordChange]>(`write ${String(kind)}`, report)),
    /** A record was written, in its transaction. What a tap throws aborts that. */
    written: new Strict<[Written]>('written', report),
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

/** Taps the hooks of the kernel with functions of a plugin, bound to its service. */
export function tapKernel<S>(hooks: KernelHooks, tapper: Tapper, taps: KernelTaps<S>, self: S): void {
  const {
    check,
    known,
    published,
    projected,
    running,
    changed,
    leaving,
    authenticate,
    admit,
    replied,
    scope,
    write,
    written,
  } = taps
  if (check) hooks.check.tap(tapper, plugin => check(self, plugin))
  if (known) hooks.known.tap(tapper, change => known(self, change))
  if (published) hooks.published.tap(tapper, change => published(self, change))
  if (projected) hooks.projected.tap(tapper, change => projected(self, change))
  if (running) hooks.running.tap(tapper, change => running(self, change))
  if (changed) hooks.changed.tap(tapper, (name, state) => changed(self, name, state))
  if (leaving) hooks.leaving.tap(tapper, going => leaving(self, going))
  if (authenticate) hooks.authenticate.tap(tapper, incoming => authenticate(self, incoming))
  if (admit) hooks.admit.tap(tapper, (incoming, route) => admit(self, incoming, route))
  if (replied) hooks.replied.tap(tapper, exchange => replied(self, exchange))
  if (scope) hooks.scope.tap(tapper, (t, wanted) => scope(self, t, wanted))
  for (const [kind, guard] of Object.entries(write ?? {}))
    hooks.write.for(kind).tap(tapper, (t, change) => guard(self, t, change))
  if (written) hooks.written.tap(tapper, (t, done) => written(self, t, done))
}
