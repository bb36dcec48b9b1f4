import * as v from 'valibot'
import { homeNote } from './home-notes.js'

/** Successors that the watchdog starts within {@link WINDOW_MS} before the daemon is started in safe mode. */
export const MAX_SUCCESSORS = 3
/** Successors in safe mode within the same time before no other is started: then it is no extension that holds the daemon. */
const MAX_SAFE_SUCCESSORS = 3
const WINDOW_MS = 10 * 60_000

/** What follows a daemon that the watchdog ends. */
export type Succession = 'normal' | 'safe mode' | 'none'

/** Milliseconds since 1970, and who held the daemon. */
const End = v.object({ at: v.number(), owner: v.string() })
const Ends = v.object({ ends: v.array(End) })

const endsNote = (home: string) => homeNote(home, 'watchdog.json', Ends)

/** How often, and for whom, the watchdog ended a daemon of this home lately. */
function recentEnds(home: string): v.InferOutput<typeof End>[] {
  // Also a clock that was set back must not keep an end recent for ever.
  return (
    endsNote(home)
      .read()
      ?.ends.filter(({ at }) => Math.abs(Date.now() - at) < WINDOW_MS) ?? []
  )
}

/** Notes that the watchdog ends the daemon now; says what follows. */
export function noteEnd(home: string, owner: string): Succession {
  const ends = [...recentEnds(home), { at: Date.now(), owner }]
  endsNote(home).write({ ends })
  if (ends.length <= MAX_SUCCESSORS) return 'normal'
  return ends.length <= MAX_SUCCESSORS + MAX_SAFE_SUCCESSORS ? 'safe mode' : 'none'
}

/** Who held the daemon lately. */
export const recentCulprits = (home: string): Set<string> => new Set(recentEnds(home).map(({ owner }) => owner))

/** Why a daemon that starts now is to be in safe mode; undefined when it is not. */
export function whySafeMode(home: string): string | undefined {
  const { length } = recentEnds(home)
  if (length <= MAX_SUCCESSORS) return undefined
  return `the watchdog ended the daemon ${length} times within ${WINDOW_MS / 60_000} minutes`
}

/**
 * Why a daemon that a service manager starts again is not to run; undefined when it is. The manager starts whatever follows one that
 * was ended, so the limit of the watchdog, at which it starts no successor, is held here.
 */
export function whyNoMore(home: string): string | undefined {
  const { length } = recentEnds(home)
  if (length <= MAX_SUCCESSORS + MAX_SAFE_SUCCESSORS) return undefined
  return `the watchdog ended the daemon ${length} times within ${WINDOW_MS / 60_000} minutes, in safe mode as well`
}

/** A person stopped the daemon: what comes next begins anew. */
export const forgetEnds = (home: string): void => endsNote(home).remove()
