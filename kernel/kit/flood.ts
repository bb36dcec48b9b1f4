import type { Clock } from '../contract/basics.js'
import type { Fault } from '../contract/errors.js'
import type { Report } from '../contract/hook.js'
import { isDropIn } from '../contract/plugin.js'
import { type Rate, TokenBucket } from './rate.js'

/** What one drop-in may do: there is room for all together, and one must not take that of others. */
const DROP_IN: Rate = { burst: 10_000, perSecond: 100 }

/**
 * Asked before a plugin does `n` more of what is named, `events`; those of the package may always. The function throws the refusal,
 * which is a fault of the plugin as well.
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
    const error = refusal(`${owner}: over ${burst} ${what} at once or ${perSecond} a second`)
    report({ owner, hook: what, error })
    throw error
  }
}
