import * as v from 'valibot'
import { homeNote } from './home-notes.js'

const Suspect = v.object({
  /** Name of a plugin or of whom it works for; `unknown` when nothing showed whose the code was. */
  owner: v.string(),
  /** The function and where it stands, for people. */
  where: v.string(),
  /** RFC 3339. */
  at: v.string(),
  pid: v.number(),
  blocked_seconds: v.number(),
})
/** Who held the main thread when the daemon had to be ended. Written by the watchdog, taken by the next start. */
export type Suspect = Readonly<v.InferOutput<typeof Suspect>>

const suspectNote = (home: string) => homeNote(home, 'suspect.json', Suspect)

/** By file calls of its own, for the database belongs to the thread that is blocked; on the disk when it returns. */
export const writeSuspect = (home: string, suspect: Suspect): void => suspectNote(home).write(suspect)

/** The suspect of the daemon before, if it left one that can be read. */
export const readSuspect = (home: string): Suspect | undefined => suspectNote(home).read()

/** It is left out once: the start after this one tries it again. */
export const forgetSuspect = (home: string): void => suspectNote(home).remove()

/** What happened, for the log and doctor. */
export function describeSuspect({ where, pid, blocked_seconds }: Suspect): string {
  return `it held the daemon (pid ${pid}) for ${blocked_seconds} s in ${where} until the watchdog ended it; it is left out of this run, the next start tries it again`
}
