import { accessSync, closeSync, constants, readSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { openRegularFileSync } from '../../../kernel/kit/read-file.js'
import { ifPossible } from '../../../kernel/kit/system-calls.js'

const defaultPath = '/usr/local/bin:/bin:/usr/bin'
const firstLineBytes = 256

/**
 * Throws the error that starting this command would give, with its code (`ENOENT`, `EACCES`): the program that sets the mark of a
 * process is started in its place, and reports errors only as text. Searches like execvp(3), and blocks no longer than a start.
 */
export function checkCommand(command: string, cwd: string, path: string = defaultPath): void {
  const places = command.includes('/') ? [''] : path.split(':')
  let refused: unknown
  for (const folder of places) {
    const file = resolve(cwd, folder, command)
    try {
      accessSync(file, constants.X_OK)
      if (!statSync(file).isFile()) throw failure('EACCES', `${file} is not a file`)
      checkInterpreter(file, cwd)
      return
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'ENOENT' && code !== 'ENOTDIR') refused ??= error
    }
  }
  throw refused ?? failure('ENOENT', `${command} does not exist`)
}

/** A script whose interpreter is missing is reported as missing itself. */
function checkInterpreter(file: string, cwd: string): void {
  const start = Buffer.alloc(firstLineBytes)
  const opened = ifPossible(() => openRegularFileSync(file))
  // A file that is executable but not readable is not a script.
  if (opened === undefined) return
  try {
    readSync(opened, start)
  } finally {
    closeSync(opened)
  }
  const interpreter = /^#!\s*(\S+)/.exec(start.toString('latin1'))?.[1]?.replace(/\0.*$/, '')
  if (interpreter) accessSync(resolve(cwd, interpreter), constants.X_OK)
}

function failure(code: string, message: string): Error {
  return Object.assign(new Error(`${code}: ${message}`), { code })
}
