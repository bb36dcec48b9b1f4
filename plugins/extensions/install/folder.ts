import { constants } from 'node:fs'
import { lstat, open, opendir, realpath } from 'node:fs/promises'
import path from 'node:path'
import { messageOf } from '../../../kernel/plugin.js'
import { InstallErrors, refused } from './errors.js'
import { limits } from './limits.js'
import { partsOf, type Tree, TreeBuilder } from './tree.js'

/**
 * The tree of a local folder. A link is refused and never followed, also one that takes a folder's place
 * while it is read.
 * @param leftOut names that are passed over wherever they stand
 * @throws Fault `extension_source_unreachable`, `extension_content_refused`
 */
export async function readFolder(folder: string, leftOut: readonly string[] = []): Promise<Tree> {
  const root = await realpath(folder).catch(unreadable(folder))
  const tree = new TreeBuilder()
  await readInto(tree, root, '', leftOut)
  return tree.build(() => true)
}

async function readInto(tree: TreeBuilder, root: string, inner: string, leftOut: readonly string[]): Promise<void> {
  const folder = path.join(root, inner)
  const entries = await opendir(folder, { encoding: 'utf8' }).catch(unreadable(folder))
  for await (const { name } of entries) {
    if (leftOut.includes(name)) continue
    const relative = inner === '' ? name : `${inner}/${name}`
    // Also a name that is not valid UTF-8 is refused here, for by it nothing is found.
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

/** Reads a file that is still where it was looked at; a folder above it may have become a link meanwhile. */
async function readPlain(root: string, relative: string, size: number): Promise<Buffer> {
  const file = path.join(root, relative)
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  const handle = await open(file, flags).catch(unreadable(relative))
  try {
    const [opened, real] = [await handle.stat(), await realpath(file).catch(() => undefined)]
    if (!opened.isFile() || opened.nlink !== 1 || opened.size !== size || real !== file)
      throw refused('changing', 'it is being changed; try again', relative)
    const bytes = Buffer.alloc(size)
    const { bytesRead } = await handle.read(bytes, 0, size, 0)
    if (bytesRead !== size) throw refused('changing', 'it is being changed; try again', relative)
    return bytes
  } finally {
    await handle.close()
  }
}

/** Bytes of a local archive, no more than an archive may have. */
export async function readLocalArchive(file: string): Promise<Buffer> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch(unreadable(file))
  try {
    const { size } = await handle.stat()
    if (size > limits.archiveBytes)
      throw refused('too_large', `the archive has ${size} bytes, at most ${limits.archiveBytes} are taken`)
    const bytes = Buffer.alloc(size)
    const { bytesRead } = await handle.read(bytes, 0, size, 0)
    return bytes.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}

function unreadable(what: string) {
  return (error: unknown): never => {
    throw InstallErrors.extension_source_unreachable(`${what} cannot be read: ${messageOf(error)}`)
  }
}
