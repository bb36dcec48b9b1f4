import * as v from 'valibot'
import { homeNote } from './home-notes.js'

/** Successors started by the watchdog within {@link WINDOW_MS} before the next one starts in safe mode. */
export const MAX_SUCCESSORS = 3
/** Safe-mode successors within that time before no more are started: the cause is then not an extension. */
const MAX_SAFE_SUCCESSORS = 3
const WINDOW_MS = 10 * 60_000

/** The kind of successor after the watchdog ends a daemon. */
export type Succession = 'normal' | 'safe mode' | 'none'

/** Milliseconds since 1970, and the owner of the blocking code. */
const End = v.object({ at: v.number(), owner: v.string() })
const Ends = v.object({ ends: v.array(End) })

const endsNote = (home: string) => homeNote(home, 'watchdog.json', Ends)

/** Recent ends of daemons of this home by the watchdog. */
function recentEnds(home: string): v.InferOutput<typeof End>[] {
  // A clock that was set back must not keep an end recent for ever.
  return (
    endsNote(home)
      .read()
      ?.ends.filter(({ at }) => Math.abs(Date.now() - at) < WINDOW_MS) ?? []
  )
}

/** Records an end by the watchdog; returns the kind of successor. */
export function noteEnd(home: string, owner: string): Succession {
  const ends = [...recentEnds(home), { at: Date.now(), owner }]
  endsNote(home).write({ ends })
  if (ends.length <= MAX_SUCCESSORS) return 'normal'
  return ends.length <= MAX_SUCCESSORS + MAX_SAFE_SUCCESSORS ? 'safe mode' : 'none'
}

/** Owners of code that blocked the daemon recently. */
export const recentCulprits = (home: string): Set<string> => new Set(recentEnds(home).map(({ owner }) => owner))

/** Reason for which a starting daemon runs in safe mode; undefined for a normal start. */
export function whySafeMode(home: string): string | undefined {
  const { length } = recentEnds(home)
  if (length <= MAX_SUCCESSORS) return undefined
  return `the watchdog killed the daemon ${length} times within ${WINDOW_MS / 60_000} minutes`
}

/**
 * Reason for which a daemon must not run again under a service manager; undefined when it may. The manager always starts a
 * successor, so the limit of the watchdog is enforced here.
 */
export function whyNoMore(home: string): string | undefined {
  const { length } = recentEnds(home)
  if (length <= MAX_SUCCESSORS + MAX_SAFE_SUCCESSORS) return undefined
  return `the watchdog killed the daemon ${length} times within ${WINDOW_MS / 60_000} minutes, in safe mode as well`
}

/** Resets the limit after a stop by a person. */
export const forgetEnds = (home: string): void => endsNote(home).remove()
