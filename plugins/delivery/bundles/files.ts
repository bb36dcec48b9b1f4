import { readdir, stat } from 'node:fs/promises'
import path from 'node:path'
import { resolveInside } from '../extensions/api.js'

/** Bundle files below one path of a manifest. */
const MAX_FILES = 256

/**
 * Bundle files at a path of a manifest, relative to the root: the file itself; for a folder its `.toml` and `.json`
 * files, and `bundle.toml` or `bundle.json` of its subfolders.
 */
export async function bundleFiles(root: string, relative: string): Promise<string[]> {
  const real = await resolveInside(root, relative)
  if ((await stat(real)).isFile()) return [relative]
  const found: string[] = []
  for (const entry of (await readdir(real, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const below = path.posix.join(relative, entry.name)
    if (/\.(?:toml|json)$/.test(entry.name)) found.push(below)
    else if (entry.isDirectory()) {
      const names = await readdir(path.join(real, entry.name))
      const own = ['bundle.toml', 'bundle.json'].find(name => names.includes(name))
      if (own !== undefined) found.push(path.posix.join(below, own))
    }
    if (found.length > MAX_FILES) throw new Error(`${relative} has more than ${MAX_FILES} bundles`)
  }
  return found
}
