import type { Clock } from './contract/clock.js'
import type { Ids } from './contract/ids.js'
import type { Plugin } from './contract/plugin.js'
import type { KernelStart } from './contract/plugin-kernel.js'
import type { Door } from './contract/route.js'
import type { LogLine } from './log.js'
import type { Disk } from './store/disk.js'
import type { FreeBytes } from './store/disk-guard.js'

export interface KernelOptions {
  readonly home: string
  readonly plugins: readonly Plugin[]
  /** Names without which the boot stops. */
  readonly critical?: readonly string[]
  /** Names of plugins that may take the place of those which they replace, beside those of `plugins.replace`. */
  readonly replace?: readonly string[]
  /**
   * Finds the plugins that `plugins.replace` names, in the store as well. Called only when it names any that may run; those
   * found boot with the others, and what they replace is not applied unless they fail. Must not throw.
   */
  readonly replacements?: (names: readonly string[], start: KernelStart) => Promise<readonly Plugin[]>
  /** Plugins that do not run this time, and why, for people. */
  readonly leftOut?: readonly { readonly name: string; readonly why: string }[]
  /** Why no drop-in runs, and no plugin that takes the place of another; absent when they do. */
  readonly safeMode?: string
  /** Called once the home is this kernel's alone, before anything of it is opened; a throw undoes the start. */
  readonly locked?: () => void
  /** Phases of a shutdown, in order; `http` and `socket` are the kernel's own. Phases not named here come last. */
  readonly quiesceOrder?: readonly string[]
  /** Doors to open; default none, `inject` alone. */
  readonly listen?: readonly Exclude<Door, 'inject'>[]
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly log?: (line: LogLine) => void
  readonly clock?: Clock
  readonly ids?: Ids
  /**
   * Starts a home that has data but no catalog with a new one, putting what is left of the old one aside; refused otherwise
   * (`catalog_missing`). With a catalog that is there it is refused as well (`catalog_present`).
   */
  readonly newCatalog?: boolean
  /** Milliseconds that a starting kernel waits for another one of this home to end. */
  readonly waitForLockMs?: number
  /** How free space is found; default: the system is asked. */
  readonly freeBytes?: FreeBytes
  /** File calls of the database; tests delay them and let them fail. */
  readonly disk?: Disk
  /** Where the system lists its TCP connections, default /proc/net; a folder without `tcp` is a system that does not. */
  readonly connectionTables?: string
  /** Checks replies against their schemas: tests and development. */
  readonly checkReplies?: boolean
}
