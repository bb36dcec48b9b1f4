import * as v from 'valibot'
import { homeNote } from './home-notes.js'

const Suspect = v.object({
  /** Name of a plugin, or of the owner of its work; `unknown` when the owner of the code could not be determined. */
  owner: v.string(),
  /** Function and code location, for people. */
  where: v.string(),
  /** RFC 3339. */
  at: v.string(),
  pid: v.number(),
  blocked_seconds: v.number(),
})
/** The blocker of the main thread when the daemon was ended. Written by the watchdog, read by the next start. */
export type Suspect = Readonly<v.InferOutput<typeof Suspect>>

const suspectNote = (home: string) => homeNote(home, 'suspect.json', Suspect)

/** Written synchronously to a file, because the database belongs to the blocked thread; durable on return. */
export const writeSuspect = (home: string, suspect: Suspect): void => suspectNote(home).write(suspect)

/** The suspect of the previous daemon, if it left a readable one. */
export const readSuspect = (home: string): Suspect | undefined => suspectNote(home).read()

/** The suspect is disabled only once: the start after this one tries it again. */
export const forgetSuspect = (home: string): void => suspectNote(home).remove()

/** A description for the log and doctor. */
export function describeSuspect({ where, pid, blocked_seconds }: Suspect): string {
  return `it blocked the event loop of the daemon (pid ${pid}) for ${blocked_seconds} s in ${where} until the watchdog killed the daemon; it does not run now and is started again with the next start`
}
