import { isDropIn } from '../../../../kernel/platform.js'
import type { Fault, Party, PluginKernel, Tx } from '../../../../kernel/plugin.js'
import type { InstalledExtension } from '../api.js'
import type { Brought } from '../consent/brought.js'
import type { K } from '../needs.js'
import { Secrets } from '../secrets.js'
import { removeDataFolders } from '../storage/data-folder.js'
import { forgetState } from '../storage/storage.js'
import { BindingTable, FlagTable } from '../tables.js'
import { Installer } from './installer.js'
import { AllowUnverified, Unsandboxed } from './trust.js'

/** The part of the extensions service that the installer uses. */
export interface ExtensionsHost {
  /** Reason why the extension cannot be removed: its dependents. */
  readonly disabling: (name: string) => Promise<Fault | undefined>
  /** Applies the folder of that name to the running instance. */
  readonly refresh: (name: string) => Promise<void>
  /** Whether all parts of the extension run. */
  readonly runs: (name: string) => boolean
  /** Why the extension does not start; if it ran before, its process must be ready as well. */
  readonly failing: (name: string, ran: boolean) => Promise<Fault | undefined>
  /** Kinds that its current or earlier code declares. */
  readonly kinds: (name: string) => readonly string[]
  /** Lists everything that an extension brings, as read from its files. */
  readonly brought: (extension: InstalledExtension) => Promise<readonly Brought[]>
  /** Forgets the last start of a removed extension; a purge also forgets its kinds. */
  readonly forget: (t: Tx, name: string, purge: boolean) => void
  /** Removes unused copies of code. */
  readonly sweep: () => Promise<void>
}

/** Creates the installer of the plugin `extensions`. */
export function installerFor(kernel: K, host: ExtensionsHost): Installer {
  const { disabling, refresh, runs, failing, kinds, brought, sweep } = host
  const flags = new FlagTable(kernel.db)
  const bindings = new BindingTable(kernel.db)
  return new Installer(kernel, {
    allowUnverified: () => kernel.config.get(AllowUnverified),
    unsandboxed: () => kernel.config.get(Unsandboxed),
    disabling,
    brought,
    placed: refresh,
    runs,
    tryOut: async (name, ran) => {
      await refresh(name)
      return failing(name, ran === true)
    },
    kinds,
    hasLeft: name => hasLeft(kernel, name),
    forget: (t, name, purge, kinds) => {
      flags.delete(t, name)
      host.forget(t, name, purge)
      if (!purge) return
      bindings.clear(t, name)
      forgetState(t, name)
      forgetKinds(kernel, t, name, kinds)
      for (const source of sourcesOf(name)) kernel.needs.subprocesses.reset(t, kernel.actor, source)
    },
    purge: async name => {
      // The running instance is stopped first. A name without a dot has no code in the daemon, and so no tables.
      await refresh(name)
      if (isDropIn(name)) await kernel.needs.dropIns.purge(name)
      await new Secrets(kernel).purge(name)
      await removeDataFolders(kernel, name)
      await sweep()
    },
  })
}

/**
 * Removes all records of kinds that no other plugin registers: those its code declared, and those named after the
 * extension.
 */
function forgetKinds({ records, actor }: PluginKernel, t: Tx, extension: string, brought: readonly string[]): void {
  const isOwn = (name: string) =>
    brought.includes(name) || (isDropIn(extension) && `${name}.`.startsWith(`${extension}.`))
  for (const { name: kind, registered } of records.kinds()) {
    if (registered || !isOwn(kind)) continue
    for (const { id, source } of records.list({ kind })) records.delete(t, { ...actor, source }, { kind, id })
  }
}

/** Whether a removed extension left records, tables or bindings. */
function hasLeft({ db, records }: PluginKernel, name: string): boolean {
  const isIn = (table: string, where: string) =>
    db.get(`SELECT 1 FROM ${table} WHERE ${where} = ? LIMIT 1`, [name]) !== undefined
  return (
    sourcesOf(name).some(source => records.count({ source }) > 0) ||
    isIn('extensions_binding', 'name') ||
    isIn('extensions_state', 'extension') ||
    // Tables of a name without a dot belong to a plugin of the package.
    (isDropIn(name) && isIn('kernel_migration', 'owner'))
  )
}

/**
 * Parties that records of an extension come from: the extension, and its plugin if it has code in the daemon. Such a
 * name has a dot; a name without one could be `system`, which is the operator.
 */
function sourcesOf(name: string): Party[] {
  const own = { kind: 'extension', id: name }
  return isDropIn(name) ? [own, { kind: 'daemon', id: name }] : [own]
}
