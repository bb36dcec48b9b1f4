import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import * as v from 'valibot'
import { jsonFileSync } from '../../kernel/kit/json-file.js'

// Small files of a home, for what must be known where its database cannot be asked: by the thread of the watchdog, by a command
// beside a daemon that does not answer, and by a start before it has opened anything.

/** A note of a home. */
export interface HomeNote<T> {
  /** Undefined when there is no such file, or none that can have been written here. */
  read(): T | undefined
  /** Whole or not at all, and on the disk when it returns. @throws what the system says */
  write(note: T): void
  remove(): void
}

/** The note of this name in a home. Processes may write it at once: the last one stands. */
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
 * Says that the daemon of this home is to stop. From then on no successor is started, and one that is being started gives up,
 * until {@link forgetStop}. Does nothing where there is no home.
 */
export function askToStop(home: string): void {
  try {
    stopNote(home).write({ at: new Date().toISOString(), by_pid: process.pid })
  } catch {
    // A home that cannot be written has no daemon that could be followed by another.
  }
}

/** That the file is there says it, whatever it holds. */
export const isStopAsked = (home: string): boolean => existsSync(join(home, STOP))

export const forgetStop = (home: string): void => stopNote(home).remove()
