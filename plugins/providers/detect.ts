import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import path from 'node:path'

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
