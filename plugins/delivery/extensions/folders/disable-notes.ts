import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, rmSync } from 'node:fs'
import path from 'node:path'

// A daemon that hangs or crashes repeatedly cannot handle a request to disable an extension. The command line then leaves a note,
// an empty file with the name of the extension, and the next start applies it before it loads anything.

const NAME = /^[a-z0-9][a-z0-9-]*(?:\.[a-z0-9][a-z0-9-]*)?$/
const MAX_NAME = 129

const folderOf = (home: string) => path.join(home, 'disable')

export const isExtensionName = (name: string): boolean => name.length <= MAX_NAME && NAME.test(name)

/** Durable on return. @throws the system's error; RangeError for an invalid extension name */
export function leaveDisableNote(home: string, name: string): void {
  if (!isExtensionName(name)) throw new RangeError(`${name} is not a valid extension name`)
  const folder = folderOf(home)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  // An existing file is removed first: opening a pipe would block until it has a reader.
  removeDisableNote(home, name)
  for (const [at, flags] of [
    [path.join(folder, name), 'wx'],
    [folder, 'r'],
    [home, 'r'],
  ] as const) {
    const handle = openSync(at, flags, 0o600)
    try {
      fsyncSync(handle)
    } finally {
      closeSync(handle)
    }
  }
}

export function removeDisableNote(home: string, name: string): void {
  rmSync(path.join(folderOf(home), name), { recursive: true, force: true })
}

/** Names of extensions that the notes disable. */
export function disableNotes(home: string): string[] {
  try {
    return readdirSync(folderOf(home)).filter(isExtensionName)
  } catch {
    return []
  }
}
