import os from 'node:os'
import { Collected } from './contract/bound.js'
import { kernelToken } from './contract/kernel-tokens.js'
import type { PluginKernel } from './contract/plugin-kernel.js'
import type { FaultLog } from './host/fault-log.js'
import type { Host as PluginHost } from './host/host.js'
import type { Transport } from './http/transport.js'
import type { KernelOptions } from './kernel-options.js'
import type { Redaction } from './redaction.js'
import type { Store } from './store/index.js'
import { version } from './version.js'

/** Members marked as internal are left out of the declarations, which would otherwise pull in types of libraries. */
interface Sources {
  readonly options: KernelOptions
  /** Epoch milliseconds. */
  readonly startedAt: number
  readonly pid: number
  /** A function, because the host is created after this object. @internal */
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

/** Facts about the host for plugins. */
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
    /** The plugin that has this name now, running or not. */
    pluginOf: (name: string) => host().slots.get(name)?.plugin,
    listeners: () => transport.listening(),
    /** Open event streams by plugin. */
    streams: () => transport.carrier?.counts() ?? {},
    settings: () => collect(Collected.settings),
    commands: () => collect(Collected.commands),
    /** Distinct faults, latest last; at most 50 for each plugin. */
    faults: () => redact.value(faults.list(), name => name !== 'error'),
    /** Former names of plugins, each with the plugin that does that work now, or `kernel`. */
    formerNames,
    /** Names in `plugins.disabled` and `plugins.replace` that belong to no plugin. */
    unknownPlugins: () => host().slots.unknown(),
    store: () => store.status(),
    /** Moves the log of the store into its database; resolves when that is on the disk. */
    checkpoint: () => store.checkpoint(),
    /** Switches automatic checkpoints. Without them the database file does not change. */
    autocheckpoint: (on: boolean) => store.autocheckpoint(on),
    /** Delays transactions of these plugins until `over` resolves. */
    hold: store.hold,
  }
}

export type HostView = ReturnType<typeof hostView>

/** Facts about the host, and actions on its database. */
export const Host = kernelToken<HostView>('kernel.host@1')
