import type * as v from 'valibot'
import type { Awaitable } from './awaitable.js'
import type { Inherited, Migration } from './db.js'
import type { ErrorEntry, ErrorTable, Fault } from './errors.js'
import type { EventType } from './event.js'
import type { Hook } from './hook.js'
import type { KernelTaps } from './kernel-hooks.js'
import type { Kind } from './kind.js'
import type { Reconciler } from './reconcile.js'
import type { Route } from './route.js'
import type { RegistryToken, Token } from './token.js'

/** A background loop: runs until its signal aborts; when it throws it is started again with backoff. */
export interface Service<S> {
  readonly name: string
  readonly run: (self: S, signal: AbortSignal) => Promise<void>
}

/** What must end before the plugin is released; `phase` names its place in the order of a shutdown. */
export interface Quiesce<S> {
  readonly phase: string
  readonly run: (self: S, signal: AbortSignal) => Awaitable<void>
}

/** One configuration path that the plugin owns. */
export interface Setting<T = unknown> {
  /** Dotted, `limits.max_open`. */
  readonly path: string
  readonly section: string
  readonly schema: v.GenericSchema<unknown, T>
  readonly default: T
  /** When a change takes effect: at once, at the next start, or for what is started from then on. */
  readonly apply: 'live' | 'restart-required' | 'session-rebind'
  /** Its value is a map of named things: layers are merged by name, each thing as a whole. Default: the strongest layer alone. */
  readonly merge?: 'by-name'
  /** An overlay may say it too. Overlays may come with what somebody else wrote: nothing that guards the daemon allows one. */
  readonly overlay?: true
  /** Variable that decides it for as long as the daemon runs: JSON, or a text as it is. */
  readonly env?: string
}

/** A contribution to a registry that some plugin declares. */
export interface Contribute<S> {
  readonly to: RegistryToken<unknown>
  readonly entries: (self: S) => readonly unknown[]
}

/** A tap on another plugin's hook, found through its token. */
export interface Tap<S> {
  readonly on: Token<unknown>
  readonly tap: (service: unknown, self: S) => { hook: Hook<never>; fn: unknown }
}

/** A CLI command that is more than one request; its module is loaded when it runs. Plain data but for `load`. */
export interface Command {
  readonly path: string
  readonly summary: string
  /** Usage of the positional arguments, `<id>` or `[dir]`. */
  readonly args?: readonly CommandArgument[]
  readonly options?: readonly CommandOption[]
  readonly load: () => Promise<{ readonly run: unknown }>
}

/**
 * Asked about a request that no route matches, by its path. `true` has it routed again, once; a fault refuses it; `false` leaves it
 * to others, and to a 404. For the plugin that knows of routes which are not there yet.
 */
export type Unrouted<S> = (self: S, path: string) => Awaitable<Fault | boolean>

export interface CommandArgument {
  readonly name: string
  readonly optional?: boolean
  readonly summary?: string
}

export interface CommandOption {
  readonly name: string
  /** `workspace`: a reference; the caller's workspace when it is not given. */
  readonly type: 'boolean' | 'text' | 'integer' | 'workspace'
  /** Of a text: those that it can be. */
  readonly values?: readonly string[]
  readonly summary: string
}

/** Everything that a plugin registers, as data that can be read without running anything. */
export interface Surface<S> {
  // biome-ignore-start lint/suspicious/noExplicitAny: the erasing lines of the registries
  readonly kinds?: readonly Kind<any>[]
  readonly reconcilers?: readonly Reconciler<S, any>[]
  readonly routes?: readonly Route<S>[]
  readonly events?: readonly EventType<any>[]
  readonly settings?: readonly Setting<any>[]
  // biome-ignore-end lint/suspicious/noExplicitAny: as above
  readonly tables?: readonly Migration[]
  /** Tables of another stream that the plugin goes on with. A plugin in the place of another has those of that one, undeclared. */
  readonly inherits?: readonly Inherited[]
  readonly services?: readonly Service<S>[]
  readonly quiesce?: readonly Quiesce<S>[]
  readonly errors?: readonly ErrorTable<Readonly<Record<string, ErrorEntry>>>[]
  readonly commands?: readonly Command[]
  readonly unrouted?: readonly Unrouted<S>[]
  /** Registries that are this plugin's: it collects what others contribute. */
  readonly declares?: readonly RegistryToken<unknown>[]
  readonly registries?: readonly Contribute<S>[]
  readonly taps?: readonly Tap<S>[]
  /** Taps on the hooks of the kernel itself. */
  readonly hooks?: KernelTaps<S>
}

/** The surface of a service of type `S`: typed constructors for what needs to know it. */
export interface SurfaceOf<S> {
  reconciler<T>(entry: Reconciler<S, T>): Reconciler<S, T>
  contribute<T>(to: RegistryToken<T>, entries: (self: S) => readonly NoInfer<T>[]): Contribute<S>
  tap<T, F>(on: Token<T>, hook: (service: T) => Hook<F>, fn: (self: S) => NoInfer<F>): Tap<S>
}

/** Typed constructors of surface entries for a service of type `S`; routes have their own, `routeOf<S>()`. */
export function surfaceOf<S>(): SurfaceOf<S> {
  return {
    reconciler: entry => entry,
    contribute: (to, entries) => ({ to, entries }),
    tap: (on, hook, fn) => ({
      on,
      tap: (service, self) => ({ hook: hook(service as never) as unknown as Hook<never>, fn: fn(self) }),
    }),
  }
}
