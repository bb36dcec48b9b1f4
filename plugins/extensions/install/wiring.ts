import type { Fault, PluginKernel } from '../../../kernel/plugin.js'
import { BindingTable, FlagTable } from '../tables.js'
import { Installer } from './installer.js'
import { AllowUnverified } from './trust.js'

/** What the installer asks of the service that runs the extensions. */
export interface ExtensionsHost {
  /** May the extension be removed; the refusal names what depends on it. */
  readonly disabling: (name: string) => Promise<Fault | undefined>
  /** Makes what runs the same as what is in the folder of that name. */
  readonly look: (name: string) => Promise<void>
  /** Removes copies of code that nothing runs any more. */
  readonly sweep: () => Promise<void>
}

/** The installer within the plugin `extensions`. */
export function installerFor(kernel: PluginKernel, { disabling, look, sweep }: ExtensionsHost): Installer {
  const flags = new FlagTable(kernel.db)
  const bindings = new BindingTable(kernel.db)
  return new Installer(kernel, {
    allowUnverified: () => kernel.setting(AllowUnverified),
    disabling,
    placed: look,
    forget: (t, name, purge) => {
      flags.delete(t, name)
      if (purge) bindings.clear(t, name)
    },
    purge: async name => {
      // What runs of it goes first. A name without a dot has no code in the daemon, and so no tables.
      await look(name)
      if (name.includes('.')) await kernel.dropIns.purge(name)
      await sweep()
    },
  })
}
