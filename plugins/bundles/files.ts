import { constants } from 'node:fs'
import { open, readdir, stat } from 'node:fs/promises'
import path from 'node:path'
import { resolveInside } from '../extensions/api.js'

/** Files of bundles below one path of a manifest. */
const MAX_FILES = 256

/**
 * The files of bundles at a path of a manifest, relative to the root: the file itself; of a folder its `.toml` and `.json`
 * files, and `bundle.toml` or `bundle.json` of the folders in it.
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

/** Bytes of a regular file of the extension, bounded. The path is resolved: a link that appears at its end now is refused. */
export async function readInside(root: string, relative: string, max: number): Promise<Uint8Array> {
  const real = await resolveInside(root, relative)
  const handle = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const info = await handle.stat()
    if (!info.isFile()) throw new Error('it is not a regular file')
    if (info.size > max) throw new Error(`it has ${info.size} bytes, at most ${max} are read`)
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(info.size + 1), 0, info.size + 1, 0)
    if (bytesRead > info.size) throw new Error('it changed while it was read')
    return buffer.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}

/** A text file of the extension; undefined when there is none. Throws when it is not UTF-8. */
export async function readText(root: string, relative: string, max: number): Promise<string> {
  return new TextDecoder('utf-8', { fatal: true }).decode(await readInside(root, relative, max))
}
