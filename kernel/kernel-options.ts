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
  /** Default: `filePorts()` of `svc/plugins` in a program that imports it; `{}` is a kernel without any. */
  readonly ports?: Ports
  /** Names without which the boot stops. */
  readonly critical?: readonly string[]
  /** Names of plugins that may take the place of those which they replace, beside those of `plugins.replace`. */
  readonly replace?: readonly string[]
  /** Names that plugins had in earlier versions, and the plugin that does their work now, or `kernel`. */
  readonly formerNames?: Readonly<Record<string, string>>
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
  readonly locked?: () => Awaitable<void>
  /** Phases of a shutdown, in order; `http` and `socket` are the kernel's own. Phases not named here come last. */
  readonly quiesceOrder?: readonly string[]
  /** Doors to open; default none, `inject` alone. */
  readonly listen?: readonly Exclude<Door, 'inject'>[]
  /** Sockets that this process was started with, which are served in place of new ones. Its caller closes what no door serves. */
  readonly inherited?: InheritedSockets
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Takes the lines of the log: a function, or a logger that makes a child for each plugin. Default: they are not written. */
  readonly log?: LogSink | LogPort
  readonly clock?: Clock
  readonly ids?: Ids
  /**
   * Starts a home that has data but no catalog with a new one: told to the judges of the home. That of `filePorts()` puts what is left
   * of the old one aside, and refuses such a home otherwise (`catalog_missing`), or one that has a catalog (`catalog_present`).
   */
  readonly newCatalog?: boolean
  /** Milliseconds that a starting kernel waits for another one of this home to end. */
  readonly waitForLockMs?: number
  /**
   * Tells this process from one that has its pid later (`inspectProcess` of `svc/plugins/processes`): by it the command line finds
   * the daemon of a home that does not answer.
   */
  readonly startTime?: string | undefined
  /** How free space is found; default: the system is asked. */
  readonly freeBytes?: Starting['freeBytes']
  /** File calls of the database; tests delay them and let them fail. */
  readonly disk?: Disk
  /** Replies that do not match what their route declares are refused with `reply_invalid`: tests and development. */
  readonly checkReplies?: boolean
}
