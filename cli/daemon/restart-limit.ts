import { join } from 'node:path'
import { readNote, removeNote, writeNote } from './home-notes.js'

/** Successors that the watchdog starts within {@link WINDOW_MS} before the daemon is started in safe mode. */
export const MAX_SUCCESSORS = 3
/** Successors in safe mode within the same time before no other is started: then it is no extension that holds the daemon. */
const MAX_SAFE_SUCCESSORS = 3
const WINDOW_MS = 10 * 60_000

/** What follows a daemon that the watchdog ends. */
export type Succession = 'normal' | 'safe mode' | 'none'

const endsPath = (home: string) => join(home, 'watchdog.json')

interface End {
  /** Milliseconds since 1970. */
  readonly at: number
  /** Who held the daemon. */
  readonly owner: string
}

/** How often, and for whom, the watchdog ended a daemon of this home lately. */
function recentEnds(home: string): End[] {
  const { ends } = (readNote(endsPath(home)) ?? {}) as { ends?: unknown }
  if (!Array.isArray(ends)) return []
  // Also a clock that was set back must not keep an end recent for ever.
  return ends.filter(end => typeof end?.owner === 'string' && Math.abs(Date.now() - end.at) < WINDOW_MS)
}

/** Notes that the watchdog ends the daemon now; says what follows. */
export function noteEnd(home: string, owner: string): Succession {
  const ends = [...recentEnds(home), { at: Date.now(), owner }]
  writeNote(endsPath(home), { ends })
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

/** A person stopped the daemon: what comes next begins anew. */
export const forgetEnds = (home: string): void => removeNote(endsPath(home))
