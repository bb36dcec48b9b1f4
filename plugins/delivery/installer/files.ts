import { constants } from 'node:fs'
import { lstat, mkdir, open, readdir, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Tree } from './source/tree.js'

/** All calls that change the disk, as an interface, so that a test can stop the process between any two. */
export interface Files {
  /** Creates a folder, mode 0700; its parent must exist. */
  makeFolder(folder: string): Promise<void>
  /** Creates a file, mode 0600 or 0700; durable when it resolves. */
  writeFile(file: string, bytes: Uint8Array, executable: boolean): Promise<void>
  /** Makes the names in a folder durable. */
  syncFolder(folder: string): Promise<void>
  rename(from: string, to: string): Promise<void>
  /** Removes anything at the path; links are not followed. */
  remove(path: string): Promise<void>
}

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_RDONLY, O_WRONLY } = constants

/** The disk of this machine. */
export const systemFiles: Files = {
  makeFolder: folder => mkdir(folder, { mode: 0o700 }),
  async writeFile(file, bytes, executable) {
    const handle = await open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, executable ? 0o700 : 0o600)
    try {
      await handle.writeFile(bytes)
      await handle.sync()
    } finally {
      await handle.close()
    }
  },
  async syncFolder(folder) {
    const handle = await open(folder, O_RDONLY | O_DIRECTORY)
    await handle.sync().finally(() => handle.close())
  },
  rename,
  remove: target => rm(target, { recursive: true, force: true }),
}

/** Whether a name exists, including a broken link. */
export async function isThere(target: string): Promise<boolean> {
  return lstat(target).then(
    () => true,
    () => false,
  )
}

/** Names in a folder; none if it does not exist. */
export async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(error => {
    if (error.code === 'ENOENT') return []
    throw error
  })
}

/** Writes a checked tree into a new folder; durable when it resolves, except for the folder's own name. */
export async function writeTree(files: Files, tree: Tree, root: string): Promise<void> {
  await files.makeFolder(root)
  const made = new Set([root])
  for (const file of tree) {
    const target = path.join(root, ...file.path.split('/'))
    for (const folder of foldersAbove(target, root)) {
      if (made.has(folder)) continue
      await files.makeFolder(folder)
      made.add(folder)
    }
    await files.writeFile(target, file.bytes, file.executable)
  }
  for (const folder of [...made].reverse()) await files.syncFolder(folder)
}

/** Writes a checked tree for temporary reading; a crash may leave part of it. */
export async function writeDraft(tree: Tree, root: string): Promise<void> {
  for (const file of tree) {
    const target = path.join(root, ...file.path.split('/'))
    await mkdir(path.dirname(target), { recursive: true, mode: 0o700 })
    await writeFile(target, file.bytes, { flag: 'wx', mode: file.executable ? 0o700 : 0o600 })
  }
}

function foldersAbove(target: string, root: string): string[] {
  const folder = path.dirname(target)
  return folder === root ? [] : [...foldersAbove(folder, root), folder]
}
