import type { Awaitable } from './basics.js'
import type { Configuring, SettingSource } from './config.js'
import type { Log, PluginKernel } from './plugin-kernel.js'
import type { DiskKeeper } from './storage.js'

/** A home before its database is opened and its plugins are applied. */
export interface Starting extends Pick<PluginKernel, 'home' | 'clock' | 'env'> {
  readonly log: Log
  /** A new catalog was asked for. */
  readonly newCatalog: boolean
  /** What the surfaces of all plugins name. */
  readonly ofCatalog: readonly string[]
  /** How free bytes of a folder's file system are found, where the embedder says it. */
  readonly freeBytes?: ((folder: string) => Promise<number>) | undefined
}

/**
 * What a kernel needs of its surroundings before there are plugins. A plugin that works with a port requires the token of the same
 * object: `SettingValues`, `DiskSpace`.
 */
export interface Ports {
  /** What is configured; read before the home is locked. Without it settings are their defaults. */
  readonly settings?: (start: Starting & Configuring) => Awaitable<SettingSource>
  /** Keeps room on the disk; asked before the home is locked. Without it a write finds out by itself that there is none. */
  readonly disk?: (start: Starting) => DiskKeeper
  /** Each judges the locked home before its database is opened; a throw stops the start. */
  readonly judges?: readonly ((start: Starting) => Awaitable<void>)[]
}
