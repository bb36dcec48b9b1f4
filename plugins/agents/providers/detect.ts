import { constants } from 'node:fs'
import { access, realpath, stat } from 'node:fs/promises'
import path from 'node:path'
import { readRegularFile } from '../../../kernel/kit/read-file.js'

/** Absolute path of an executable file: the first one in `folders`, or `command` itself when it is absolute. Starts nothing. */
export async function findExecutable(command: string, folders: readonly string[]): Promise<string | undefined> {
  if (command === '' || command.includes('\0')) return undefined
  if (command.includes('/')) return path.isAbsolute(command) && (await isExecutable(command)) ? command : undefined
  for (const folder of folders) {
    const candidate = path.join(folder, command)
    if (await isExecutable(candidate)) return candidate
  }
  return undefined
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK)
    return (await stat(file)).isFile()
  } catch {
    return false
  }
}

/** Parent folders searched for the file with a program's version. */
const LEVELS = 5
const SIZE_MAX = 256 * 1024

/** Version of the npm package that a program belongs to; undefined for any other. Starts nothing. */
export async function packageVersion(executable: string): Promise<string | undefined> {
  let folder = path.dirname(await realpath(executable).catch(() => executable))
  for (let level = 0; level < LEVELS; level++) {
    const text = await readSmall(path.join(folder, 'package.json'))
    if (text !== undefined) return versionIn(text)
    folder = path.dirname(folder)
  }
  return undefined
}

async function readSmall(file: string): Promise<string | undefined> {
  const bytes = await readRegularFile(file, { maxBytes: SIZE_MAX }).catch(() => undefined)
  return bytes?.toString()
}

function versionIn(text: string): string | undefined {
  try {
    const { version } = JSON.parse(text) as { version?: unknown }
    return typeof version === 'string' && /^[\w.+-]{1,64}$/.test(version) ? version : undefined
  } catch {
    return undefined
  }
}
