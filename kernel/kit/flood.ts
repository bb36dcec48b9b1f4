import type { Clock } from '../contract/basics.js'
import type { Fault } from '../contract/errors.js'
import type { Report } from '../contract/hook.js'
import { isDropIn } from '../contract/plugin.js'
import { type Rate, TokenBucket } from './rate.js'

/** The rate for each drop-in. Capacity is shared, and one drop-in must not use up the share of others. */
const DROP_IN: Rate = { burst: 10_000, perSecond: 100 }

/**
 * Makes the rate check of a plugin, to be called before `n` more of `what`, such as `events`. Plugins of the package are not
 * limited. A refusal is thrown and also reported as the plugin's fault.
 */
export function allowance(
  what: string,
  owner: string,
  { clock, report }: { readonly clock: Clock; readonly report: Report },
  refusal: (text: string) => Fault,
): (n: number) => void {
  const bucket = new TokenBucket(DROP_IN, clock)
  return n => {
    if (!isDropIn(owner) || bucket.tryTake(n)) return
    const { burst, perSecond } = DROP_IN
    const error = refusal(`${owner}: more than a burst of ${burst} ${what} or ${perSecond} per second`)
    report({ owner, hook: what, error })
    throw error
  }
}
