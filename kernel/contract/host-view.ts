import type { ConfigState } from './config.js'
import type { StoreStatus } from './db.js'
import type { Plugin } from './plugin.js'
import type { Command, Setting } from './surface.js'

/** State of a plugin; `absent` ones are not known to the host at all. */
export type PluginState =
  /** `missing` leads from the plugin over those that it requires to the token that is not to be had, and why. */
  | { readonly status: 'waiting'; readonly missing: readonly string[] }
  | { readonly status: 'active' }
  | { readonly status: 'failed'; readonly error: string }
  | { readonly status: 'disabled'; readonly why: string }

/** Why a plugin does not run, for people; empty when it does. */
export function reasonOf(state: PluginState): string {
  if (state.status === 'failed') return state.error
  if (state.status === 'waiting') return `it waits for ${state.missing.join(' → ')}`
  return state.status === 'disabled' ? state.why : ''
}

export interface PluginInfo {
  readonly name: string
  readonly version: string
  readonly state: PluginState
  readonly requires: readonly string[]
  readonly provides?: string
  /** The plugin that runs in the place of the one of this name. */
  readonly replacedBy?: string
  /** Registries that it contributes to and whose owner does not run: what it contributes waits. */
  readonly unclaimed: readonly string[]
  /** Labels of what its scope holds. */
  readonly holds: readonly string[]
}

/**
 * Plugins with a dot in their name, which come and go while the rest runs. Changes are made one after the other; while
 * the caller itself starts or ends, and during the boot, they are refused with `change_under_way`.
 */
export interface DropIns {
  /**
   * Loads a plugin, or puts it in the place of the version that is there, which comes back when the new one does not start.
   * @throws Fault `reload_failed`, saying why
   */
  put(plugin: Plugin): Promise<PluginState>
  /** Unloads a plugin; what it replaced comes back. */
  remove(name: string): Promise<void>
  /** Why nothing of that name is to run: the configuration has it disabled, or it is left out this time. */
  whyNot(name: string): string | undefined
  /** Drops the tables of a plugin that was removed; resolves when they are gone from the disk. Safe to repeat. */
  purge(name: string): Promise<void>
}

/** Where a listener can be reached. */
export type ListenerInfo =
  | { readonly door: 'tcp'; readonly host: string; readonly port: number }
  | { readonly door: 'socket'; readonly path: string }

/**
 * Whether TCP is served, and if not, why: `disabled` by a setting, `unsupported` because the system does not tell which local
 * user connects. `unchecked` serves every local user, for the setting insists where the system does not tell.
 */
export type TcpState =
  | { readonly status: 'on' }
  | { readonly status: 'disabled' | 'unsupported' | 'unchecked'; readonly why: string }

/** A service that ended unexpectedly, a tap or a release that failed: attributed to its plugin. */
export interface AttributedFault {
  /** Epoch milliseconds of the last time. */
  readonly at: number
  /** How often the same has happened. */
  readonly count: number
  readonly owner: string
  readonly where: string
  readonly error: string
}

/** What plugins may know of the host they run in. */
export interface HostView {
  readonly version: string
  /** Epoch milliseconds. */
  readonly startedAt: number
  /** Why no drop-in runs; absent when they do. */
  readonly safeMode?: string
  readonly pid: number
  readonly userHome: string
  plugins(): PluginInfo[]
  listeners(): ListenerInfo[]
  tcp(): TcpState
  /** Open event streams by plugin. */
  streams(): Readonly<Record<string, number>>
  settings(): { readonly owner: string; readonly entry: Setting }[]
  commands(): { readonly owner: string; readonly entry: Command }[]
  /** Different ones, the latest last; of each plugin at most 50. */
  faults(): readonly AttributedFault[]
  /** Names in `plugins.disabled` and `plugins.replace` that no plugin has. */
  unknownPlugins(): readonly string[]
  store(): StoreStatus
  /** Moves the log of the store into its database; resolves when that is on the disk. */
  checkpoint(): Promise<void>
  /** What of the configuration file is not in force, and why. */
  config(): ConfigState
}
