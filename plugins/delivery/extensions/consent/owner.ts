import type { PluginKernel } from '../../../../kernel/plugin.js'
import type { InstalledExtension } from '../api.js'

/** The extension that something was brought by, which is run and resolved as that extension. */
export interface Owner {
  /** Name of the extension. */
  readonly name: string
  /** Its folder; absent while it is not known. */
  readonly root?: string
  /** It came from a catalog or a repository, and runs in a sandbox. */
  readonly confined: boolean
}

/** Who is asked for the owner of what an extension brings; absent where the plugin does not run. */
interface Owners {
  owner(key: string): Owner
}

/**
 * The owner of what the extension of that key brings; undefined for what no extension does. An extension that nobody knows is held
 * to most.
 */
export function ownerOf(extensions: Owners | undefined, key: string | undefined): Owner | undefined {
  if (key === undefined) return undefined
  return extensions?.owner(key) ?? { name: key.split('@', 1)[0] ?? key, confined: true }
}

/** The same, among those that are installed; `unsandboxed` are names of those that run with the rights of the operator. */
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

/** Who asks for secrets of what an extension brings: its own are resolved, and no others. */
export const askerOf = (
  { collect }: Pick<PluginKernel, 'collect'>,
  { name }: Pick<Owner, 'name'>,
): Pick<PluginKernel, 'collect' | 'name'> => ({ collect, name: `extensions/${name}` })
