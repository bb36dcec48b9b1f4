import { constants } from 'node:fs'
import { access, open, stat } from 'node:fs/promises'
import { resolve } from 'node:path'

const defaultPath = '/usr/local/bin:/bin:/usr/bin'
const firstLineBytes = 256

/**
 * Throws what starting this command would, with its code (`ENOENT`, `EACCES`): what sets the mark of a process starts in
 * its place, and could only say so in words. Looks as execvp(3) does.
 */
export async function checkCommand(command: string, cwd: string, path: string = defaultPath): Promise<void> {
  const places = command.includes('/') ? [''] : path.split(':')
  let refused: unknown
  for (const place of places) {
    const file = resolve(cwd, place, command)
    try {
      await access(file, constants.X_OK)
      if ((await stat(file)).isDirectory()) throw failure('EACCES', `${file} is a folder`)
      return await checkInterpreter(file, cwd)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'ENOENT' && code !== 'ENOTDIR') refused ??= error
    }
  }
  throw refused ?? failure('ENOENT', `${command} is not there`)
}

/** A script whose interpreter is missing is reported as missing itself. */
async function checkInterpreter(file: string, cwd: string): Promise<void> {
  // A program that may be run and not read is no script.
  const handle = await open(file, 'r').catch(() => undefined)
  if (!handle) return
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(firstLineBytes), 0, firstLineBytes, 0)
    const interpreter = /^#!\s*(\S+)/.exec(buffer.toString('latin1', 0, bytesRead))?.[1]
    if (interpreter !== undefined) await access(resolve(cwd, interpreter), constants.X_OK)
  } finally {
    await handle.close()
  }
}

function failure(code: string, message: string): Error {
  return Object.assign(new Error(`${code}: ${message}`), { code })
}
