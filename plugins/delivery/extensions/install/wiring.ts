import { isDropIn } from '../../../../kernel/platform.js'
import type { Fault, PluginKernel, Tx } from '../../../../kernel/plugin.js'
import type { InstalledExtension } from '../api.js'
import type { Brought } from '../consent/brought.js'
import type { InstallerKernel } from '../needs.js'
import { Secrets } from '../secrets.js'
import { removeDataFolders } from '../subprocess/data-folder.js'
import { forgetState } from '../subprocess/state.js'
import { BindingTable, FlagTable } from '../tables.js'
import { Installer } from './installer.js'
import { AllowUnverified, Unsandboxed } from './trust.js'

/** What the installer asks of the service that runs the extensions. */
export interface ExtensionsHost {
  /** May the extension be removed; the refusal names what depends on it. */
  readonly disabling: (name: string) => Promise<Fault | undefined>
  /** Makes what runs the same as what is in the folder of that name. */
  readonly look: (name: string) => Promise<void>
  /** Whether all of it runs. */
  readonly runs: (name: string) => boolean
  /** Why what is in its folder does not start; of one that ran, its process has to be ready as well. */
  readonly failing: (name: string, ran: boolean) => Promise<Fault | undefined>
  /** Kinds that its code brings, or brought. */
  readonly kinds: (name: string) => readonly string[]
  /** Everything that an extension brings, read from a folder of its files. */
  readonly brought: (extension: InstalledExtension) => Promise<readonly Brought[]>
  /** It was removed: what is known of its last start is forgotten, when it is purged its kinds as well. */
  readonly forget: (t: Tx, name: string, purge: boolean) => void
  /** Removes copies of code that nothing runs any more. */
  readonly sweep: () => Promise<void>
}

/** The installer within the plugin `extensions`. */
export function installerFor(kernel: InstallerKernel, host: ExtensionsHost): Installer {
  const { disabling, look, runs, failing, kinds, brought, sweep } = host
  const flags = new FlagTable(kernel.db)
  const bindings = new BindingTable(kernel.db)
  return new Installer(kernel, {
    allowUnverified: () => kernel.config.get(AllowUnverified),
    unsandboxed: () => kernel.config.get(Unsandboxed),
    disabling,
    brought,
    placed: look,
    runs,
    tryOut: async (name, ran) => {
      await look(name)
      return failing(name, ran === true)
    },
    kinds,
    forget: (t, name, purge, kinds) => {
      flags.delete(t, name)
      host.forget(t, name, purge)
      if (!purge) return
      bindings.clear(t, name)
      forgetState(t, name)
      forgetKinds(kernel, t, name, kinds)
    },
    purge: async name => {
      // What runs of it goes first. A name without a dot has no code in the daemon, and so no tables.
      await look(name)
      if (isDropIn(name)) await kernel.needs.dropIns.purge(name)
      await new Secrets(kernel).purge(name)
      await removeDataFolders(kernel, name)
      await sweep()
    },
  })
}

/** Removes the records of kinds that nobody else has, whoever wrote them: of those it brought, and of all that begin with its name. */
function forgetKinds({ records, actor }: PluginKernel, t: Tx, extension: string, brought: readonly string[]): void {
  const isOwn = (name: string) =>
    brought.includes(name) || (isDropIn(extension) && `${name}.`.startsWith(`${extension}.`))
  for (const { name: kind, registered } of records.kinds()) {
    if (registered || !isOwn(kind)) continue
    for (const { id, source } of records.list({ kind })) records.delete(t, { ...actor, source }, { kind, id })
  }
}
