import { DropIns } from '../../../../../kernel/platform.js'
import { DiskSpace, definePlugin, Host, maybe } from '../../../../../kernel/plugin.js'
import { Vault } from '../../../../../plugins/access/vault/api.js'
import { ExtensionErrors } from '../../../../../plugins/delivery/extensions/errors.js'
import { InstallErrors } from '../../../../../plugins/delivery/extensions/install/errors.js'
import { installEvents } from '../../../../../plugins/delivery/extensions/install/events.js'
import { Installer, type InstallerOptions } from '../../../../../plugins/delivery/extensions/install/installer.js'
import { installMigrations } from '../../../../../plugins/delivery/extensions/install/provenance.js'
import { AllowUnverified } from '../../../../../plugins/delivery/extensions/install/trust.js'
import type { InstallerKernel } from '../../../../../plugins/delivery/extensions/needs.js'
import { sourceTable } from '../../../../../plugins/delivery/subprocess-host/snapshots.js'
import { Events } from '../../../../../plugins/platform/events/api.js'
import { Processes } from '../../../../../plugins/platform/processes/api.js'

/** A plugin that has the installer and nothing else. */
export class Holder {
  readonly installer: Installer
  constructor(
    readonly kernel: InstallerKernel,
    options: Partial<InstallerOptions> = {},
  ) {
    const allowUnverified = () => kernel.config.get(AllowUnverified)
    const none = { unsandboxed: () => [], brought: async () => [] }
    this.installer = new Installer(kernel, { allowUnverified, ...none, ...options })
  }

  start(): Promise<void> {
    return this.installer.start()
  }
}

export function holderPlugin(options: Partial<InstallerOptions>, made: (holder: Holder) => void) {
  return definePlugin({
    name: 'extensions',
    version: '0.1.0',
    requires: {
      host: Host,
      disk: DiskSpace,
      dropIns: DropIns,
      events: Events,
      processes: Processes,
      vault: maybe(Vault),
    },
    service: async () =>
      class extends Holder {
        constructor(kernel: InstallerKernel) {
          super(kernel, options)
          made(this)
        }
      },
  }).surface({
    tables: installMigrations,
    inherits: [sourceTable],
    events: installEvents,
    errors: [InstallErrors, ExtensionErrors],
    settings: [AllowUnverified],
  })
}
