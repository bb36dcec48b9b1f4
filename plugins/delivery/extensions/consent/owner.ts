import type { PluginKernel } from '../../../../kernel/plugin.js'
import type { InstalledExtension } from '../api.js'

/** The extension that owns an item: the item runs and resolves secrets as that extension. */
export interface Owner {
  /** Name of the extension. */
  readonly name: string
  /** Its folder; absent while it is unknown. */
  readonly root?: string
  /** Whether it came from a catalog or a repository and therefore runs in a sandbox. */
  readonly confined: boolean
}

/** The part of the extensions plugin that finds owners. */
interface Owners {
  owner(key: string): Owner
}

/**
 * The owner of items of the extension of that key; undefined without a key. An unknown extension is confined.
 */
export function ownerOf(extensions: Owners | undefined, key: string | undefined): Owner | undefined {
  if (key === undefined) return undefined
  return extensions?.owner(key) ?? { name: key.split('@', 1)[0] ?? key, confined: true }
}

/**
 * Finds the owner among the installed extensions; `unsandboxed` are names of extensions that run with the operator's
 * rights.
 */
export function ownerAmong(
  installed: readonly Pick<InstalledExtension, 'name' | 'key' | 'root' | 'tier'>[],
  key: string,
  unsandboxed: readonly string[],
): Owner {
  const found = installed.find(one => one.key === key) ?? installed.find(({ name }) => name === key)
  if (!found) return { name: key.split('@', 1)[0] ?? key, confined: true }
  const { name, root, tier } = found
  return { name, root, confined: tier === 'marketplace' && !unsandboxed.includes(name) }
}

/** The identity that resolves secrets for items of an extension: it has access to that extension's secrets only. */
export const askerOf = (
  { collect }: Pick<PluginKernel, 'collect'>,
  { name }: Pick<Owner, 'name'>,
): Pick<PluginKernel, 'collect' | 'name'> => ({ collect, name: `extensions/${name}` })
