import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, rmSync } from 'node:fs'
import path from 'node:path'

// A daemon that is held, or that ends again and again, cannot be asked to switch an extension off. The command line leaves a note
// then: an empty file with the name of the extension. The next start honours it before it loads anything.

const NAME = /^[a-z0-9][a-z0-9-]*(?:\.[a-z0-9][a-z0-9-]*)?$/
const MAX_NAME = 129

const folderOf = (home: string) => path.join(home, 'disable')

export const isExtensionName = (name: string): boolean => name.length <= MAX_NAME && NAME.test(name)

/** Durable when it returns. @throws what the system says; RangeError for what can be no name of an extension */
export function leaveDisableNote(home: string, name: string): void {
  if (!isExtensionName(name)) throw new RangeError(`${name} is not a valid extension name`)
  const folder = folderOf(home)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  // Whatever lies there goes: to open a pipe would be to wait for its reader.
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

/** Names of extensions that are to be switched off. */
export function disableNotes(home: string): string[] {
  try {
    return readdirSync(folderOf(home)).filter(isExtensionName)
  } catch {
    return []
  }
}
