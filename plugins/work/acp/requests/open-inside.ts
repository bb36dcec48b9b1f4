import { constants, existsSync } from 'node:fs'
import { type FileHandle, mkdir, open } from 'node:fs/promises'
import path from 'node:path'
import { PathRefused } from './paths.js'

/** O_PATH of Linux, missing in Node: opens a folder for traversal without the right to read it. */
const O_PATH = 0o10000000
const FOLDER = constants.O_DIRECTORY | constants.O_NOFOLLOW

/**
 * Opens a path after its check without a race: each folder is opened below the one before, and a symlink created since the check is
 * refused. Without /proc only the last member is protected.
 * @param canonical absolute, without symlinks at the time of the check
 * @param make create missing folders
 */
export async function openInside(canonical: string, flags: number, make: boolean): Promise<FileHandle> {
  // O_NONBLOCK, because opening a pipe would otherwise wait for its other end.
  const last = flags | constants.O_NOFOLLOW | constants.O_NONBLOCK
  if (!existsSync('/proc/self/fd')) {
    if (make) await mkdir(path.dirname(canonical), { recursive: true })
    return refusing(canonical, open(canonical, last, 0o666))
  }
  const names = canonical.split(path.sep).filter(name => name !== '')
  const file = names.pop() ?? ''
  let folder = await open(path.sep, O_PATH | FOLDER)
  try {
    for (const name of names) {
      const below = `/proc/self/fd/${folder.fd}/${name}`
      const next = await refusing(
        canonical,
        open(below, O_PATH | FOLDER).catch(async error => {
          if (!make || error.code !== 'ENOENT') throw error
          await mkdir(below)
          return open(below, O_PATH | FOLDER)
        }),
      )
      await folder.close()
      folder = next
    }
    return await refusing(canonical, open(`/proc/self/fd/${folder.fd}/${file}`, last, 0o666))
  } finally {
    await folder.close()
  }
}

/** Turns the error for a new symlink into a refusal. */
async function refusing(canonical: string, opening: Promise<FileHandle>): Promise<FileHandle> {
  return opening.catch(error => {
    if (error.code === 'ELOOP' || error.code === 'ENOTDIR') {
      throw new PathRefused(`${canonical} changed while it was looked at`)
    }
    throw error
  })
}
