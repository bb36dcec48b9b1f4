import type { Clock } from '../contract/clock.js'
import { KernelErrors } from '../contract/errors.js'
import type { Report } from '../contract/hook.js'
import { isDropIn } from '../contract/plugin.js'
import { type Rate, TokenBucket } from './rate.js'

/** What one drop-in may do: there is room for all together, and one must not take that of others. */
const DROP_IN: Rate = { burst: 10_000, perSecond: 100 }

/**
 * Asked before a plugin does `n` more of that; those of the package may always. The function throws `event_flood` or `mark_flood`,
 * which is a fault of the plugin as well.
 */
export function allowance(what: 'event' | 'mark', owner: string, clock: Clock, report: Report): (n: number) => void {
  const bucket = new TokenBucket(DROP_IN, clock)
  return n => {
    if (!isDropIn(owner) || bucket.tryTake(n)) return
    const { burst, perSecond } = DROP_IN
    const error = KernelErrors[`${what}_flood`](`${owner}: over ${burst} ${what}s at once or ${perSecond} a second`)
    report({ owner, hook: `${what}s`, error })
    throw error
  }
}
