import os from 'node:os'
import { Collected } from './contract/bound.js'
import { given } from './contract/kernel-tokens.js'
import type { PluginKernel } from './contract/plugin-kernel.js'
import type { FaultLog } from './host/fault-log.js'
import type { Host as PluginHost } from './host/host.js'
import type { Transport } from './http/transport.js'
import type { KernelOptions } from './kernel-options.js'
import type { Redaction } from './redaction.js'
import type { Store } from './store/index.js'
import { version } from './version.js'

/** What is marked as internal is not declared for others: it would bring the types of libraries with it. */
interface Sources {
  readonly options: KernelOptions
  /** Epoch milliseconds. */
  readonly startedAt: number
  readonly pid: number
  /** Made after those who look at it. @internal */
  readonly host: () => PluginHost
  /** @internal */
  readonly transport: Transport
  /** @internal */
  readonly faults: FaultLog
  /** @internal */
  readonly redact: Redaction
  readonly collect: PluginKernel['collect']
  /** @internal */
  readonly store: Store
}

/** The facts about the host that plugins can read. */
export function hostView(sources: Sources) {
  const { options, startedAt, pid, host, transport, faults, redact, collect, store } = sources
  const { safeMode, env = {}, listen: doors = [], formerNames = {} } = options
  return {
    version,
    startedAt,
    pid,
    /** Why no drop-in runs; absent when they do. */
    ...(safeMode === undefined ? {} : { safeMode }),
    userHome: env.HOME ?? os.homedir(),
    /** The listeners that open after the boot; none in a program that injects its requests. */
    doors,
    // The error of a plugin is foreign text; programs read all other members.
    plugins: () => redact.value(host().slots.view(), name => name !== 'error'),
    /** The plugin that has this name now, whether it runs or not. */
    pluginOf: (name: string) => host().slots.get(name)?.plugin,
    listeners: () => transport.listening(),
    /** Open event streams by plugin. */
    streams: () => transport.carrier?.counts() ?? {},
    settings: () => collect(Collected.settings),
    commands: () => collect(Collected.commands),
    /** Different ones, the latest last; of each plugin at most 50. */
    faults: () => redact.value(faults.list(), name => name !== 'error'),
    /** Names that plugins had in earlier versions, and the plugin that does their work now, or `kernel`. */
    formerNames,
    /** Names in `plugins.disabled` and `plugins.replace` that no plugin has. */
    unknownPlugins: () => host().slots.unknown(),
    store: () => store.status(),
    /** Moves the log of the store into its database; resolves when that is on the disk. */
    checkpoint: () => store.checkpoint(),
    /** Switches automatic checkpoints. Without them the database file does not change. */
    autocheckpoint: (on: boolean) => store.autocheckpoint(on),
    /** Transactions of these plugins begin when `over` has resolved. */
    hold: store.hold,
  }
}

export type HostView = ReturnType<typeof hostView>

/** The host that plugins run in, and what can be said of it. */
export const Host = given<HostView>('kernel.host@1')
