import type { Awaitable, Clock, Ids } from './contract/basics.js'
import type { Plugin } from './contract/plugin.js'
import type { KernelStart } from './contract/plugin-kernel.js'
import type { Ports, Starting } from './contract/ports.js'
import type { Door } from './contract/route.js'
import type { InheritedSockets } from './http/listeners.js'
import type { LogPort, LogSink } from './log.js'
import type { Disk } from './store/disk.js'

export interface KernelOptions {
  readonly home: string
  readonly plugins: readonly Plugin[]
  /** Default: `filePorts()` of `svc/plugins` in a program that imports it; `{}` is a kernel without ports. */
  readonly ports?: Ports
  /** Names of plugins without which the boot fails. */
  readonly critical?: readonly string[]
  /** Names of plugins that may replace others, in addition to those of `plugins.replace`. */
  readonly replace?: readonly string[]
  /** Former names of plugins, each with the plugin that does that work now, or `kernel`. */
  readonly formerNames?: Readonly<Record<string, string>>
  /**
   * Finds the plugins that `plugins.replace` names, which may be in the database. Called only when it names any that may run. They
   * boot with the others, and a plugin that they replace runs only if they fail. Must not throw.
   */
  readonly replacements?: (names: readonly string[], start: KernelStart) => Promise<readonly Plugin[]>
  /** Plugins that are left out of this run, with the reason for people. */
  readonly leftOut?: readonly { readonly name: string; readonly why: string }[]
  /** Why no drop-in and no replacement runs; absent when they do. */
  readonly safeMode?: string
  /** Called when the home is locked, before anything in it is opened; a throw undoes the start. */
  readonly locked?: () => Awaitable<void>
  /** Phases of a shutdown, in order; `http` and `socket` are the kernel's own. Phases not named here come last. */
  readonly quiesceOrder?: readonly string[]
  /** Doors to open; by default none, only `inject`. */
  readonly listen?: readonly Exclude<Door, 'inject'>[]
  /**
   * Sockets that the service manager passed to this process, used instead of new ones. The caller closes the ones that no door
   * serves.
   */
  readonly inherited?: InheritedSockets
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Receives the lines of the log: a function, or a logger that makes a child for each plugin. By default nothing is logged. */
  readonly log?: LogSink | LogPort
  readonly clock?: Clock
  readonly ids?: Ids
  /**
   * Starts a home that has data but no database with a new one. The ports judge this: `filePorts()` puts the remains of the old one
   * aside. It refuses such a home without this option (`catalog_missing`), and one that has a database with it (`catalog_present`).
   */
  readonly newCatalog?: boolean
  /** Milliseconds to wait for another kernel of this home to end. */
  readonly waitForLockMs?: number
  /**
   * Start time of this process (`inspectProcess` of `svc/plugins/processes`), which distinguishes it from a later one with the same
   * pid: the command line uses it to find a daemon that does not answer.
   */
  readonly startTime?: string | undefined
  /** Finds the free bytes of a folder; default: a system call. */
  readonly freeBytes?: Starting['freeBytes']
  /** File calls of the database; tests delay them and make them fail. */
  readonly disk?: Disk
  /** Refuses replies that do not match their route's declaration with `reply_invalid`: for tests and development. */
  readonly checkReplies?: boolean
}
