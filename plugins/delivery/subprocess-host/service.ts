import type { Actor, Party, Tx } from '../../../kernel/plugin.js'
import { HealthEscalation } from '../../desk/daemon/api.js'
import type { InstalledExtension } from '../extensions/api.js'
import type { ExtensionRuntime, RuntimeContext, SubprocessHostApi } from './api.js'
import type { K } from './needs.js'
import { Provisions } from './provisions.js'
import { type ProcessHost, SubprocessRuntime } from './runtime.js'
import { SubprocessSettings } from './settings.js'
import { Snapshots } from './snapshots.js'

/** Creates the processes of extensions. */
export class SubprocessHostService implements SubprocessHostApi {
  readonly host: ProcessHost
  readonly #provisions: Provisions
  readonly #snapshots: Snapshots

  constructor(kernel: K) {
    const { clock, ids, log, db, records, needs, env, collect, config } = kernel
    const limits = {
      callTimeout: config.get(SubprocessSettings.callTimeout),
      maxMemory: config.get(SubprocessSettings.maxMemory),
      allowedKinds: config.get(SubprocessSettings.allowedKinds),
      maxScope: config.get(SubprocessSettings.maxScope),
      snapshotRate: config.get(SubprocessSettings.snapshotRate),
      escalation: config.get(HealthEscalation),
    }
    this.host = { clock, ids, log, db, records, needs, env, collect, limits }
    this.#provisions = new Provisions(kernel)
    this.#snapshots = new Snapshots(kernel)
  }

  runtimeOf(extension: InstalledExtension, context: RuntimeContext): ExtensionRuntime {
    return new SubprocessRuntime(this.host, extension, context)
  }

  isNeeded(extension: InstalledExtension): boolean {
    return this.#provisions.isNeeded(extension)
  }

  reset(t: Tx, actor: Actor, source: Party): void {
    this.#snapshots.reset(t, actor, source)
  }
}
