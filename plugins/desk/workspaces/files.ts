import { constants } from 'node:fs'
import { type FileHandle, link, open, rename, rm } from 'node:fs/promises'
import path from 'node:path'

/** Whether a canonical path is a root or lies below it. */
export function isInside(inner: string, root: string): boolean {
  return inner === root || inner.startsWith(root.endsWith(path.sep) ? root : root + path.sep)
}

/**
 * Whether a canonical path lies in the daemon's home, outside of the workspace `scratch`. Such a file belongs to no workspace,
 * even if a root encloses it.
 */
export function isOfDaemon(file: string, home: string): boolean {
  return isInside(file, home) && !isInside(file, scratchIn(home))
}

/** The folder `.svc` of a root, with the definitions of the workspace; undefined if it is the home of the daemon. */
export function ownFolder(root: string, home: string): string | undefined {
  const folder = path.join(root, '.svc')
  return isOfDaemon(folder, home) ? undefined : folder
}

/** Folder of the workspace `scratch` in the home of the daemon. */
export const scratchIn = (home: string) => path.join(home, 'scratch')

/**
 * Writes a file atomically: after a crash it is complete or absent. Resolves once it is on disk. The parent folder must exist and
 * be canonical; a link at the end of the path is replaced, never followed.
 * @param unique part of the name of the temporary file beside it
 * @param how `create`: keeps an existing file and returns false; `replace`: replaces an existing file
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

/** Makes changes of a folder's entries durable. */
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

/** A hard link is the only way to give a complete file a name without replacing an existing one. */
async function linkNew(temporary: string, file: string): Promise<boolean> {
  try {
    await link(temporary, file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}
