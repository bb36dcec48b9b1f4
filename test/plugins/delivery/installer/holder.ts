import { definePlugin } from '../../../../kernel/plugin.js'
import { ExtensionErrors } from '../../../../plugins/delivery/extensions/errors.js'
import { InstallErrors } from '../../../../plugins/delivery/installer/errors.js'
import { installEvents } from '../../../../plugins/delivery/installer/events.js'
import { Installer, type InstallerOptions } from '../../../../plugins/delivery/installer/installer.js'
import { type K, needs } from '../../../../plugins/delivery/installer/needs.js'
import { installMigrations } from '../../../../plugins/delivery/installer/provenance.js'
import { AllowUnverified } from '../../../../plugins/delivery/installer/trust.js'

/** A plugin that has the installer and nothing else. */
export class Holder {
  readonly installer: Installer
  constructor(
    readonly kernel: K,
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
    requires: needs,
    service: async () =>
      class extends Holder {
        constructor(kernel: K) {
          super(kernel, options)
          made(this)
        }
      },
  }).surface({
    tables: installMigrations,
    events: installEvents,
    errors: [InstallErrors, ExtensionErrors],
    settings: [AllowUnverified],
  })
}
