import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import * as v from 'valibot'
import { jsonFileSync } from '../../kernel/kit/json-file.js'

// Small files of a home for data that must be available without its database: for the watchdog thread, for a command next to an
// unresponsive daemon, and for a start that has not opened anything yet.

/** A note of a home. */
export interface HomeNote<T> {
  /** Undefined for a missing or invalid file. */
  read(): T | undefined
  /** Writes atomically and durably. @throws the system's error */
  write(note: T): void
  remove(): void
}

/** The note of this name in a home. With concurrent writers the last one wins. */
export function homeNote<T extends object>(
  home: string,
  name: string,
  schema: v.GenericSchema<unknown, T>,
): HomeNote<T> {
  const path = join(home, name)
  const file = jsonFileSync(path, schema, null, { writer: String(process.pid) })
  return {
    read() {
      try {
        return file.read() ?? undefined
      } catch {
        return undefined
      }
    },
    write: note => file.write(note),
    remove: () => rmSync(path, { force: true }),
  }
}

const STOP = 'stop-asked.json'
const stopNote = (home: string) => homeNote(home, STOP, v.object({ at: v.string(), by_pid: v.number() }))

/**
 * Requests a stop of the daemon of this home. Until {@link forgetStop} no successor is started, and a starting one gives up. Does
 * nothing without a home.
 */
export function askToStop(home: string): void {
  try {
    stopNote(home).write({ at: new Date().toISOString(), by_pid: process.pid })
  } catch {
    // An unwritable home has no daemon that could have a successor.
  }
}

/** The existence of the file is the request, regardless of its content. */
export const isStopAsked = (home: string): boolean => existsSync(join(home, STOP))

/** On a read-only file system a needless removal would fail, instead of the write that matters. */
export function forgetStop(home: string): void {
  if (isStopAsked(home)) stopNote(home).remove()
}
