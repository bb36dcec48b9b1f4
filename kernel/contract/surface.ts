import type * as v from 'valibot'
import type { Awaitable } from './basics.js'
import type { ErrorEntry, ErrorTable } from './errors.js'
import type { Hook } from './hook.js'
import type { KernelTaps } from './kernel-hooks.js'
import type { Kind, Reconciler } from './kind.js'
import type { SecretSource } from './redact.js'
import type { Route } from './route.js'
import type { Inherited, Migration, SqlValue } from './storage.js'
import type { MaybeToken, RegistryToken, Token } from './token.js'

/** An event that plugins may follow: its name and the schema of its JSON payload, at most 256 KiB. */
export interface EventType<P = unknown> {
  /** `workspace.created`; families are the part before the last dot. */
  readonly name: string
  readonly payload: v.GenericSchema<unknown, P>
}

/** Declares an event; the name `gap` is the log's own. */
export function event<P>(name: string, payload: v.GenericSchema<unknown, P>): EventType<P> {
  if (name === 'gap')
    throw new TypeError('no event can be named gap: cursors get an event of this name for events that they missed')
  return { name, payload }
}

/** A background loop: runs until its signal aborts; when it throws it is started again with backoff. */
export interface Service<S> {
  readonly name: string
  readonly run: (self: S, signal: AbortSignal) => Promise<void>
}

/** Work that must end before the plugin is released; `phase` names its place in the order of a shutdown. */
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
  /** The moment a change takes effect: at once, at the next start, or with work that starts later. */
  readonly apply: 'live' | 'restart-required' | 'session-rebind'
  /** Its value is a map of named things: layers are merged by name, each thing as a whole. Default: the strongest layer alone. */
  readonly merge?: 'by-name'
  /** Whether an entry of such a map, as it is written, guards something: where it is not valid, it is refused and not left out. */
  readonly guards?: (entry: unknown) => boolean
  /** Overlays may set it. An overlay can come with a foreign repository, so no setting that guards the daemon allows one. */
  readonly overlay?: true
  /** Variable that decides it for as long as the daemon runs: JSON, or a text as it is. */
  readonly env?: string
}

/** A contribution to a registry that some plugin declares. */
export interface Contribute<S> {
  readonly to: RegistryToken<unknown>
  readonly entries: (self: S) => readonly unknown[]
}

/**
 * A tap on another plugin's hook, found through its token. One on `maybe(Token)` makes no edge in the plan: it is there while
 * both plugins run, from the change in which the second one starts.
 */
export interface Tap<S> {
  readonly on: Token<unknown> | MaybeToken<unknown>
  readonly hook: (service: unknown) => Hook<never>
  readonly fn: (self: S) => unknown
}

/** A CLI command that is more than one request; its module is loaded when it runs. Plain data but for `load`. */
export interface Command {
  readonly path: string
  readonly summary: string
  /** Usage of the positional arguments, `<id>` or `[dir]`. */
  readonly args?: readonly CommandArgument[]
  readonly options?: readonly CommandOption[]
  /** The command changes files of its caller without a daemon, and has no dry run. */
  readonly local?: true
  readonly load: () => Promise<{ readonly run: unknown }>
}

export interface CommandArgument {
  readonly name: string
  readonly optional?: boolean
  readonly summary?: string
}

export interface CommandOption {
  readonly name: string
  /** `workspace`: a reference; the caller's workspace when it is not given. `list`: may be given several times; for the program's own. */
  readonly type: 'boolean' | 'text' | 'integer' | 'workspace' | 'list'
  /** Of a text: those that it can be. */
  readonly values?: readonly string[]
  /** Of a workspace: when none is given, the project around the current directory becomes one. */
  readonly opens?: true
  readonly summary: string
}

/** Rows that hang on a thing of a plugin: they are deleted when that has ended, if need be at the next start of this plugin. */
export interface OwnedRows<S> {
  /** The service of the plugin that owns the thing. The name alone requires nothing. */
  readonly by: Token<unknown>
  /** A table of this plugin, with rowids. */
  readonly table: string
  /** Holds the id of the thing, or the empty text or NULL for none. */
  readonly column: string
  /** A further value that means no owner. */
  readonly none?: string
  /**
   * Deletes what a row stands for and is not in the database, before the row goes. May be called again for the same row; a throw
   * keeps the row for another try.
   */
  readonly forget?: (self: S, row: Readonly<Record<string, SqlValue>>) => Awaitable<void>
}

/** What else goes with a thing, where no row tells of it: called once its rows of the entries before this one are gone. */
export interface OwnedRest<S> {
  readonly by: Token<unknown>
  readonly ended: (self: S, id: string) => Awaitable<void>
}

export type Owned<S> = OwnedRows<S> | OwnedRest<S>

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
  /**
   * Tables of another stream that the plugin goes on with: they are there, and no plugin that runs has them. A plugin in the place of
   * another has those of that one, undeclared.
   */
  readonly inherits?: readonly Inherited[]
  /** Rows that go with things of other plugins, or of its own. */
  readonly owned?: readonly Owned<S>[]
  /** Folders below the home that mean nothing without the catalog: when a new one begins, journals there are put aside with the old. */
  readonly ofCatalog?: readonly string[]
  readonly services?: readonly Service<S>[]
  readonly quiesce?: readonly Quiesce<S>[]
  readonly errors?: readonly ErrorTable<Readonly<Record<string, ErrorEntry>>>[]
  readonly commands?: readonly Command[]
  /** Values that must not leave the daemon; each is replaced for as long as the plugin runs and its source has it. */
  readonly secrets?: readonly ((self: S) => SecretSource)[]
  /** Registries that are this plugin's: it collects what others contribute. */
  readonly declares?: readonly RegistryToken<unknown>[]
  readonly registries?: readonly Contribute<S>[]
  readonly taps?: readonly Tap<S>[]
  /** Taps on the hooks of the kernel itself. */
  readonly hooks?: KernelTaps<S>
}

/** Typed constructors of surface entries for a service of type `S`; routes have their own, `routeOf<S>()`. */
export function surfaceOf<S>() {
  return {
    reconciler: <T>(entry: Reconciler<S, T>): Reconciler<S, T> => entry,
    contribute: <T>(to: RegistryToken<T>, entries: NoInfer<(self: S) => readonly T[]>) => ({ to, entries }),
    tap: <T, F>(on: Token<T> | MaybeToken<T>, hook: (service: T) => Hook<F>, fn: NoInfer<(self: S) => F>): Tap<S> => ({
      on,
      hook: hook as (service: unknown) => Hook<never>,
      fn,
    }),
  }
}
