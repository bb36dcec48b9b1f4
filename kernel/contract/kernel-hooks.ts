import type { Awaitable } from './awaitable.js'
import type { Tx } from './db.js'
import type { Fault } from './errors.js'
import type { PluginState } from './host-view.js'
import type { RecordScope } from './kind.js'
import type { Plugin } from './plugin.js'
import type { RecordChange } from './record.js'

/** One change of what runs: a boot, or a plugin that is loaded, reloaded or unloaded. */
export interface Change {
  /** The first one. */
  readonly boot: boolean
  /** Names of the plugins that this change started. */
  readonly started: ReadonlySet<string>
  /** Takes a plugin, and what requires it, out of the change: it fails with this text, the rest goes on. */
  fail(owner: string, error: string): void
}

/** Plugins that go, dependents first. Their routes, streams and background work end before they are released. */
export interface Leaving {
  readonly owners: readonly string[]
  /** `change`: others stay, and requests for these wait for what takes their place. */
  readonly why: 'change' | 'shutdown'
  /** The change that they leave in; absent in a shutdown. */
  readonly change?: Change
}

/** A record change inside its transaction, once it is written. */
export interface Written {
  readonly change: RecordChange
  /** Id of the event that tells of it; set by the tap that emits one. */
  event?: string
}

/**
 * Functions of a plugin on the hooks of the kernel; `self` is its service. The host taps them in plan order, and they go with
 * the plugin. What a failure means stands at each.
 */
export interface KernelTaps<S> {
  /** Refuses a plugin before anything that runs is released for it. A throw refuses. */
  readonly check?: (self: S, plugin: Plugin) => Promise<Fault | undefined>
  /** Kinds and settings of a change are set. A throw is the plugin's fault; the change goes on. */
  readonly known?: (self: S, change: Change) => void
  /** The routes of a change are served. A throw is the plugin's fault; the change goes on. */
  readonly published?: (self: S, change: Change) => Awaitable<void>
  /** Boot reconcilers of a change have run. A throw is the plugin's fault; the change goes on. */
  readonly projected?: (self: S, change: Change) => Awaitable<void>
  /** Background loops of a change are started. A throw is the plugin's fault; the change goes on. */
  readonly running?: (self: S, change: Change) => Awaitable<void>
  /** A plugin changed state after the boot, or failed. A throw is reported. */
  readonly changed?: (self: S, name: string, state: PluginState) => void
  /** Plugins are about to be released. A throw is the plugin's fault; they are released all the same. */
  readonly leaving?: (self: S, leaving: Leaving) => Awaitable<void>
  /** Refuses a record scope, inside the transaction. A throw refuses. */
  readonly scope?: (self: S, t: Tx, scope: RecordScope) => Fault | undefined
  /** Refuses a change of a record, inside the transaction, by the name of its kind; `*` is asked for every kind. A throw refuses. */
  readonly write?: Readonly<Record<string, (self: S, t: Tx, change: RecordChange) => Fault | undefined>>
  /** A record is written; its transaction is still open. A throw aborts the transaction. */
  readonly written?: (self: S, t: Tx, written: Written) => void
}
