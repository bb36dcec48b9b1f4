import type { Clock } from './clock.js'
import { KernelErrors } from './errors.js'
import type { Report } from './hooks/index.js'

/** What one drop-in may do, at once and in a second: there is room for all together, and one must not take that of others. */
const DROP_IN = { atOnce: 10_000, perSecond: 100 }

/**
 * Asked before a plugin does `n` more of that; those of the package may always. The function throws `event_flood` or `mark_flood`,
 * which is a fault of the plugin as well.
 */
export function allowance(what: 'event' | 'mark', owner: string, clock: Clock, report: Report): (n: number) => void {
  const { atOnce, perSecond } = DROP_IN
  let left = atOnce
  let at = clock.monotonic()
  return n => {
    const now = clock.monotonic()
    left = Math.min(atOnce, left + ((now - at) / 1000) * perSecond) - n
    at = now
    if (left >= 0 || !owner.includes('.')) return
    left += n
    const error = KernelErrors[`${what}_flood`](`${owner}: over ${atOnce} ${what}s at once or ${perSecond} a second`)
    report({ owner, hook: `${what}s`, error })
    throw error
  }
}
