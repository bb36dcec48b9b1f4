import { command } from '../../../kernel/kit/commands/command-line.js'
import { isDropIn } from '../../../kernel/platform.js'
import { type Actor, faultOf, type Party, type PluginKernel, type Tx } from '../../../kernel/plugin.js'
import type { RemoveExtensionQuery } from '../../../schemas/extensions/install.js'
import type { InstallTarget } from '../installer/api.js'
import { ExtensionErrors } from './errors.js'
import { placeOf } from './identity.js'
import type { CodeCache } from './load/code.js'
import type { Families } from './load/families.js'
import type { KeptCode } from './load/kept-code.js'
import type { ExtensionsService } from './service.js'
import { removeDataFolders } from './storage/data-folder.js'
import { forgetState } from './storage/storage.js'
import { bindings, flags } from './tables.js'

interface Parts {
  readonly families: Families
  readonly kept: KeptCode
  readonly code: CodeCache
}

/** The loaded extensions and their stored data, as the installer changes them. */
export function installTarget(service: ExtensionsService, { families, kept, code }: Parts): InstallTarget {
  const { kernel, folder, dev } = service
  const placed = (name: string) => folder.refresh(name)
  return {
    db: kernel.db,
    disabling: name => service.disabling.ask(name),
    brought: extension => families.brought(extension),
    placed,
    runs: name => folder.get(name)?.status === 'active',
    tryOut: async (name, ran) => {
      await placed(name)
      return folder.get(name)?.failing(ran === true)
    },
    kinds: name => kept.kindsOf(name, folder.get(name)?.installed?.code?.surface),
    hasLeft: name => hasLeft(kernel, name),
    forget: (t, name, purge, kinds) => {
      flags.delete(t, { name })
      kept.forget(t, name, purge)
      if (!purge) return
      bindings.delete(t, { name })
      forgetState(t, name)
      forgetKinds(kernel, t, name, kinds)
      for (const source of sourcesOf(name)) kernel.needs.subprocesses.reset(t, kernel.actor, source)
    },
    purge: async name => {
      // The running instance is stopped first. A name without a dot has no code in the daemon, and so no tables.
      await placed(name)
      if (isDropIn(name)) await kernel.needs.dropIns.purge(name)
      await service.secrets.purge(name)
      await removeDataFolders(kernel, name)
      await code.sweep()
    },
    show: name => service.views.toWire(service.get(name)),
    restart: name => service.restart(name),
    unlink: async (name, { purge = false, workspace }: RemoveExtensionQuery, actor: Actor) => {
      const instance = await service.choose(name, workspace).catch(error => {
        // A purge also cleans up after an extension that was removed earlier.
        if (!purge || workspace !== undefined || faultOf(error).code !== 'extension_not_found') throw error
      })
      const origin = instance?.link && (await dev.unlink(instance, actor))
      const [link] = purge && origin === undefined ? dev.of(name) : []
      if (!link) return origin
      throw ExtensionErrors.extension_in_use(`${link.key} is linked and has the same tables`, {
        next: command('extension remove', name, '--workspace', placeOf(link)),
      })
    },
  }
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
