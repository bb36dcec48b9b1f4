import { join } from 'node:path'
import { readNote, removeNote, writeNote } from './home-notes.js'

/** Who held the main thread when the daemon had to be ended. Written by the watchdog, taken by the next start. */
export interface Suspect {
  /** Name of a plugin or of whom it works for; `unknown` when nothing showed whose the code was. */
  readonly owner: string
  /** The function and where it stands, for people. */
  readonly where: string
  /** RFC 3339. */
  readonly at: string
  readonly pid: number
  readonly blocked_seconds: number
}

const suspectPath = (home: string) => join(home, 'suspect.json')

/** By file calls of its own, for the database belongs to the thread that is blocked; on the disk when it returns. */
export function writeSuspect(home: string, suspect: Suspect): void {
  writeNote(suspectPath(home), suspect)
}

/** The suspect of the daemon before, if it left one that can be read. */
export function readSuspect(home: string): Suspect | undefined {
  const { owner, where, at, pid, blocked_seconds } = (readNote(suspectPath(home)) ?? {}) as Partial<Suspect>
  if (typeof owner !== 'string' || typeof where !== 'string') return undefined
  return { owner, where, at: String(at), pid: Number(pid), blocked_seconds: Number(blocked_seconds) }
}

/** It is left out once: the start after this one tries it again. */
export function forgetSuspect(home: string): void {
  removeNote(suspectPath(home))
}

/** What happened, for the log and doctor. */
export function describeSuspect({ where, pid, blocked_seconds }: Suspect): string {
  return `it held the daemon (pid ${pid}) for ${blocked_seconds} s in ${where} until the watchdog ended it; it is left out of this run, the next start tries it again`
}
