import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { readRegularFileSync } from '../../kernel/kit/read-file.js'

// Small files of a home, for what must be known where its database cannot be asked: by the thread of the watchdog, by a command
// beside a daemon that does not answer, and by a start before it has opened anything.

/** Nothing that is written here comes near it. */
const MAX_BYTES = 64 * 1024

/** Whole or not at all, and on the disk when it returns. @throws what the system says */
export function writeNote(path: string, value: unknown): void {
  const temporary = `${path}.${process.pid}.tmp`
  // Whatever lies there goes: to open a pipe would be to wait for its reader.
  rmSync(temporary, { recursive: true, force: true })
  const file = openSync(temporary, 'wx', 0o600)
  try {
    writeSync(file, `${JSON.stringify(value)}\n`)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(temporary, path)
  const folder = openSync(join(path, '..'), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

/** Undefined when there is no such file, or none that can have been written here. */
export function readNote(path: string): unknown {
  try {
    return JSON.parse(String(readRegularFileSync(path, { maxBytes: MAX_BYTES })))
  } catch {
    return undefined
  }
}

export function removeNote(path: string): void {
  rmSync(path, { force: true })
}

const stopPath = (home: string) => join(home, 'stop-asked.json')

/**
 * Says that the daemon of this home is to stop. From then on no successor is started, and one that is being started gives up,
 * until {@link forgetStop}. Does nothing where there is no home.
 */
export function askToStop(home: string): void {
  try {
    writeNote(stopPath(home), { at: new Date().toISOString(), by_pid: process.pid })
  } catch {
    // A home that cannot be written has no daemon that could be followed by another.
  }
}

export const isStopAsked = (home: string): boolean => existsSync(stopPath(home))

export const forgetStop = (home: string): void => removeNote(stopPath(home))
