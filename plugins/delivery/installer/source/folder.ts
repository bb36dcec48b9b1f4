import { closeSync, fstatSync } from 'node:fs'
import { lstat, opendir, realpath } from 'node:fs/promises'
import path from 'node:path'
import { openRegularFile, readBounded, readRegularFile } from '../../../../kernel/kit/read-file.js'
import { messageOf } from '../../../../kernel/plugin.js'
import type { LeftOut } from '../../extensions/api.js'
import { InstallErrors, refused } from '../errors.js'
import { limits } from './limits.js'
import { partsOf, type Tree, TreeBuilder } from './tree.js'

/**
 * The tree of a local folder. A link is refused and never followed, even if it replaces a folder during the read.
 * @param leftOut decides which paths are skipped
 * @throws Fault `extension_source_unreachable`, `extension_content_refused`
 */
export async function readFolder(folder: string, leftOut: LeftOut = () => false): Promise<Tree> {
  const root = await realpath(folder).catch(unreadable(folder))
  const tree = new TreeBuilder()
  await readInto(tree, root, '', leftOut)
  return tree.build(() => true)
}

async function readInto(tree: TreeBuilder, root: string, inner: string, leftOut: LeftOut): Promise<void> {
  const folder = path.join(root, inner)
  const entries = await opendir(folder, { encoding: 'utf8' }).catch(unreadable(folder))
  for await (const { name } of entries) {
    const relative = inner === '' ? name : `${inner}/${name}`
    if (leftOut(relative)) continue
    // Also refuses a name that is not valid UTF-8, since the file could not be opened by it.
    partsOf(relative)
    const found = await lstat(path.join(root, relative)).catch(unreadable(relative))
    if (found.isSymbolicLink()) throw refused('link', 'a symbolic link', relative)
    if (found.isDirectory()) {
      tree.folder(relative)
      await readInto(tree, root, relative, leftOut)
    } else if (!found.isFile()) throw refused('special_file', 'neither a file nor a folder', relative)
    else if (found.nlink > 1) throw refused('hard_link', 'a file with another name besides', relative)
    else {
      tree.expect(relative, found.size)
      tree.add(relative, (found.mode & 0o100) !== 0, await readPlain(root, relative, found.size))
    }
  }
}

/** Reads a listed file if it is still the same; a folder above it may have become a link. */
async function readPlain(root: string, relative: string, size: number): Promise<Buffer> {
  const file = path.join(root, relative)
  const changing = () => refused('changing', 'it is being changed; try again', relative)
  const handle = await openRegularFile(file, { links: 'refuse' }).catch(unreadable(relative))
  try {
    const [opened, real] = [fstatSync(handle), await realpath(file).catch(() => undefined)]
    if (opened.nlink !== 1 || opened.size !== size || real !== file) throw changing()
    const bytes = await readBounded(handle, file, size).catch(() => Buffer.alloc(0))
    if (bytes.length !== size) throw changing()
    return bytes
  } finally {
    closeSync(handle)
  }
}

/** Reads a local archive within the size limit. */
export async function readLocalArchive(file: string): Promise<Buffer> {
  const bytes = await readRegularFile(file, { maxBytes: limits.archiveBytes }).catch(error => {
    if (error.code === 'file_too_large') throw refused('too_large', `the archive ${messageOf(error)}`)
    return unreadable(file)(error)
  })
  return bytes ?? unreadable(file)('there is no such file')
}

function unreadable(what: string) {
  return (error: unknown): never => {
    throw InstallErrors.extension_source_unreachable(`${what} cannot be read: ${messageOf(error)}`)
  }
}
