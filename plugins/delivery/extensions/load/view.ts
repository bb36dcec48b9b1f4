import type { InstalledExtension } from '../api.js'
import type { Code } from './in-process.js'
import type { Instance } from './instance.js'
import type { FolderContent } from './loader.js'

/** An extension as other plugins see it. */
export function viewOf(
  { name, key, enabled, status, tier, link }: Instance,
  { manifest, digest, root, plugin, module = '' }: Code & FolderContent,
): InstalledExtension {
  return {
    name,
    key,
    version: manifest.version,
    root,
    manifest,
    enabled,
    state: status,
    tier: tier(),
    digest,
    ...(link?.workspace ? { workspace: link.workspace } : {}),
    ...(plugin ? { code: { module, surface: plugin.surface } } : {}),
  }
}
