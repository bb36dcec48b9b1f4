import { constants } from 'node:fs'
import { type FileHandle, link, open, rename, rm } from 'node:fs/promises'
import path from 'node:path'

/** Is a canonical path a root or below it. */
export function isInside(inner: string, root: string): boolean {
  return inner === root || inner.startsWith(root.endsWith(path.sep) ? root : root + path.sep)
}

/**
 * Whether a canonical path lies in the home of the daemon, outside of the workspace `scratch`: no workspace has it among its
 * files, wherever its root is.
 */
export function isOfDaemon(file: string, home: string): boolean {
  return isInside(file, home) && !isInside(file, scratchIn(home))
}

/** The folder `.svc` of a root, with what the workspace brings; undefined where that is the home of the daemon. */
export function ownFolder(root: string, home: string): string | undefined {
  const folder = path.join(root, '.svc')
  return isOfDaemon(folder, home) ? undefined : folder
}

/** Folder of the workspace `scratch` in the home of the daemon. */
export const scratchIn = (home: string) => path.join(home, 'scratch')

/**
 * Writes a file so that after a crash there is all of it or nothing of it; resolves when it is on the disk. Its folder exists
 * and is resolved: a link at the end of the path is replaced, never followed.
 * @param unique makes the name of the temporary file beside it
 * @param how `create`: false when something is there already, which then stays; `replace`: whatever is there goes
 */
export async function writeWhole(
  file: string,
  text: string,
  { how, unique, mode = 0o644 }: { how: 'create' | 'replace'; unique: string; mode?: number },
): Promise<boolean> {
  const temporary = `${file}.${unique}.tmp`
  const handle = await open(temporary, 'wx', mode)
  try {
    await writeAndClose(handle, text)
    if (how === 'replace') await rename(temporary, file)
    else if (!(await linkNew(temporary, file))) return false
  } finally {
    await rm(temporary, { force: true })
  }
  await syncFolder(path.dirname(file))
  return true
}

/** Puts on the disk which names a folder has. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY)
  await handle.sync().finally(() => handle.close())
}

async function writeAndClose(handle: FileHandle, text: string): Promise<void> {
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** A hard link is the one way to give a whole file a name that nobody has. */
async function linkNew(temporary: string, file: string): Promise<boolean> {
  try {
    await link(temporary, file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}
