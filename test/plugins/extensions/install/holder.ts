import { definePlugin, type PluginKernel } from '../../../../kernel/plugin.js'
import { Events } from '../../../../plugins/events/api.js'
import { ExtensionErrors } from '../../../../plugins/extensions/errors.js'
import { InstallErrors } from '../../../../plugins/extensions/install/errors.js'
import { installEvents } from '../../../../plugins/extensions/install/events.js'
import { Installer, type InstallerOptions } from '../../../../plugins/extensions/install/installer.js'
import { installMigrations } from '../../../../plugins/extensions/install/provenance.js'
import { AllowUnverified } from '../../../../plugins/extensions/install/trust.js'
import { Processes } from '../../../../plugins/processes/api.js'

/** A plugin that has the installer and nothing else. */
export class Holder {
  readonly installer: Installer
  constructor(
    readonly kernel: PluginKernel<{ events: typeof Events; processes: typeof Processes }>,
    options: Partial<InstallerOptions> = {},
  ) {
    const allowUnverified = () => kernel.config.get(AllowUnverified)
    this.installer = new Installer(kernel, { allowUnverified, ...options })
  }

  start(): Promise<void> {
    return this.installer.start()
  }
}

export function holderPlugin(options: Partial<InstallerOptions>, made: (holder: Holder) => void) {
  return definePlugin({
    name: 'extensions',
    version: '0.1.0',
    requires: { events: Events, processes: Processes },
    service: async () =>
      class extends Holder {
        constructor(kernel: PluginKernel<{ events: typeof Events; processes: typeof Processes }>) {
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
