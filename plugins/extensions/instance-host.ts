import type { Clock, DropIns, PluginState } from '../../kernel/plugin.js'
import type { InstalledExtension } from './api.js'
import type { CodeCache } from './code.js'
import type { Families } from './families.js'
import type { Code } from './in-process.js'
import type { Instance } from './instance.js'
import type { ExtensionRuntime } from './runtime.js'

/** What instances share. */
export interface InstanceHost {
  readonly clock: Clock
  readonly daemonVersion: string
  readonly dropIns: DropIns
  readonly code: CodeCache
  /** A name that was never used before. */
  readonly unique: () => string
  readonly families: Families
  /** The process of an extension with `[subprocess]`. */
  readonly runtime: (extension: InstalledExtension) => ExtensionRuntime
  /** Code of that name that the boot started, or tried to. */
  readonly begun: (name: string) => Code | undefined
  /** How the plugin of that name is, wherever it has its place; undefined when there is none. */
  readonly stateOf: (name: string) => PluginState | undefined
  /** Why nothing of that name runs, although it is switched on: its configuration, or what it did to the daemon before. */
  readonly keptOff: (name: string) => string | undefined
  /** Its status, health or problem changed. */
  readonly changed: (instance: Instance) => void
  /** That happened by itself: others are to be told now. */
  readonly tell: () => void
}
