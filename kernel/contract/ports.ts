import type { Awaitable } from './basics.js'
import type { Configuring, SettingSource } from './config.js'
import type { Log, PluginKernel } from './plugin-kernel.js'
import type { DiskKeeper } from './storage.js'

/** A home before its database is opened and its plugins are applied. */
export interface Starting extends Pick<PluginKernel, 'home' | 'clock' | 'env'> {
  readonly log: Log
  /** The operator requested a new database for a home that has none. */
  readonly newCatalog: boolean
  /** The `ofCatalog` folders from the surfaces of all plugins. */
  readonly ofCatalog: readonly string[]
  /** Finds the free bytes of a folder's file system; absent for the system's own way. */
  readonly freeBytes?: ((folder: string) => Promise<number>) | undefined
}

/**
 * The environment that a kernel needs before there are plugins. A plugin that works with a port requires the token of the same
 * object: `SettingValues`, `DiskSpace`.
 */
export interface Ports {
  /** Provides the values of settings; called before the home is locked. Without it settings have their defaults. */
  readonly settings?: (start: Starting & Configuring) => Awaitable<SettingSource>
  /** Keeps space on the disk; made before the home is locked. Without it a write notices a full disk only when it fails. */
  readonly disk?: (start: Starting) => DiskKeeper
  /** Checks of the locked home before its database is opened; a throw stops the start. */
  readonly judges?: readonly ((start: Starting) => Awaitable<void>)[]
}
