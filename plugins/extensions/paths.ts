import { realpath } from 'node:fs/promises'
import path from 'node:path'
import { ExtensionErrors } from './errors.js'

/**
 * Where a path of a manifest leads, absolute, with all symlinks resolved.
 * @param root folder of the extension, absolute
 * @throws Fault `extension_path_escape` when that is outside of `root` or nowhere
 */
export async function resolveInside(root: string, relative: string): Promise<string> {
  const [realRoot, real] = await Promise.all([
    realpath(root),
    realpath(path.join(root, relative)).catch(() => {
      throw ExtensionErrors.extension_path_escape(`${relative} of ${root} does not exist`)
    }),
  ])
  if (real === realRoot || real.startsWith(realRoot + path.sep)) return real
  throw ExtensionErrors.extension_path_escape(`${relative} of ${root} leads out of it`)
}
