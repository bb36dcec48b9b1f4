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

/** Declares an event; the name `gap` is reserved for the log. */
export function event<P>(name: string, payload: v.GenericSchema<unknown, P>): EventType<P> {
  if (name === 'gap')
    throw new TypeError('no event can be named gap: a cursor receives it in place of events that it missed')
  return { name, payload }
}

/** A background loop: runs until its signal aborts; restarted with back-off when it throws. */
export interface Service<S> {
  readonly name: string
  readonly run: (service: S, signal: AbortSignal) => Promise<void>
}

/** Work that must end before the plugin is released, within `ms`; `phase` names its place in the order of a shutdown. */
export interface Quiesce<S> {
  readonly phase: string
  readonly run: (service: S, signal: AbortSignal, ms: number) => Awaitable<void>
}

/** One configuration path that the plugin owns. */
export interface Setting<T = unknown> {
  /** Dotted, `limits.max_open`. */
  readonly path: string
  readonly section: string
  readonly schema: v.GenericSchema<unknown, T>
  readonly default: T
  /** When a change takes effect: at once, at the next start, or for work that starts later. */
  readonly apply: 'live' | 'restart-required' | 'session-rebind'
  /**
   * The value is a map of named things: layers are merged by name, each thing as a whole. Default: only the strongest layer counts.
   */
  readonly merge?: 'by-name'
  /**
   * Whether an entry of such a map guards something, judged by its raw form: an invalid one is then refused instead of left out.
   */
  readonly guards?: (entry: unknown) => boolean
  /** Overlays may set it. An overlay can come with a foreign repository, so no setting that guards the daemon allows one. */
  readonly overlay?: true
  /** Environment variable that overrides it: JSON, or plain text. */
  readonly env?: string
}

/** A contribution to a registry that some plugin declares. */
export interface Contribute<S> {
  readonly to: RegistryToken<unknown>
  readonly entries: (service: S) => readonly unknown[]
}

/**
 * A tap on another plugin's hook, found through its token. A tap on `maybe(Token)` adds no requirement: it exists while both
 * plugins run, from the change in which the second one starts.
 */
export interface Tap<S> {
  readonly on: Token<unknown> | MaybeToken<unknown>
  readonly hook: (service: unknown) => Hook<never>
  readonly fn: (service: S) => unknown
}

/** A CLI command that is more than one request; its module is loaded when it runs. Plain data except for `load`. */
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
  /**
   * `workspace`: a reference, by default the caller's workspace. `list`: may be given several times; for commands of the program
   * only.
   */
  readonly type: 'boolean' | 'text' | 'integer' | 'workspace' | 'list'
  /** Allowed values of a text. */
  readonly values?: readonly string[]
  /** For a workspace: without a reference, the project around the current directory becomes one. */
  readonly opens?: true
  readonly summary: string
}

/** Rows that belong to a thing of a plugin. They are deleted after the thing has ended, or at this plugin's next start. */
export interface OwnedRows<S> {
  /** The token of the plugin that owns the thing. Naming it here requires nothing. */
  readonly by: Token<unknown>
  /** A table of this plugin, with rowids. */
  readonly table: string
  /** The column with the id of the thing; an empty text or NULL means none. */
  readonly column: string
  /** Another value that means no owner. */
  readonly none?: string
  /**
   * Deletes resources outside of the database that a row represents, before the row is deleted. May be called again for the same
   * row; a throw keeps the row for another attempt.
   */
  readonly forget?: (service: S, row: Readonly<Record<string, SqlValue>>) => Awaitable<void>
}

/** Further resources of a thing that no row represents: called after the rows of the entries before this one are deleted. */
export interface OwnedRest<S> {
  readonly by: Token<unknown>
  readonly ended: (service: S, id: string) => Awaitable<void>
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
   * Tables of another stream that the plugin takes over: they exist, and no running plugin has them. A replacement gets those of
   * its original without a declaration.
   */
  readonly inherits?: readonly Inherited[]
  /** Rows that belong to things of other plugins, or of its own. */
  readonly owned?: readonly Owned<S>[]
  /**
   * Folders below the home whose journals are meaningless without the database: when a new one begins, they are put aside with the
   * old.
   */
  readonly ofCatalog?: readonly string[]
  readonly services?: readonly Service<S>[]
  readonly quiesce?: readonly Quiesce<S>[]
  readonly errors?: readonly ErrorTable<Readonly<Record<string, ErrorEntry>>>[]
  readonly commands?: readonly Command[]
  /** Values that must not leave the daemon; each is replaced while the plugin runs and its source contains it. */
  readonly secrets?: readonly ((service: S) => SecretSource)[]
  /** Registries of this plugin, which collects the entries of others. */
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
    contribute: <T>(to: RegistryToken<T>, entries: NoInfer<(service: S) => readonly T[]>) => ({ to, entries }),
    tap: <T, F>(on: Token<T> | MaybeToken<T>, hook: (owner: T) => Hook<F>, fn: NoInfer<(service: S) => F>): Tap<S> => ({
      on,
      hook: hook as (service: unknown) => Hook<never>,
      fn,
    }),
  }
}
