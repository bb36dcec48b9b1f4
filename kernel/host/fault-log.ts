import type { Clock } from '../contract/basics.js'
import { messageOf } from '../contract/errors.js'
import type { Report } from '../contract/hook.js'
import type { Log } from '../contract/plugin-kernel.js'
import { type Rate, TokenBucket } from '../kit/rate.js'
import { clip } from '../kit/text.js'

/** A failure of a background loop, a tap or a release, attributed to its plugin. */
export interface AttributedFault {
  /** Time of the latest occurrence, in epoch milliseconds. */
  readonly at: number
  /** Number of occurrences. */
  readonly count: number
  readonly owner: string
  readonly where: string
  readonly error: string
}

/** Limits for each plugin: distinct faults that are kept, and the rate of its log lines. */
const KEPT = 50
const LINES: Rate = { burst: 60, perSecond: 1 }
const LONGEST = 2000

/**
 * Faults by plugin. Repetitions are counted, and each plugin has limits of its own, so that a flood leaves the others their space.
 */
export class FaultLog {
  constructor(
    private readonly clock: Pick<Clock, 'now' | 'monotonic'>,
    private readonly logOf: (owner: string) => Pick<Log, 'warn'>,
  ) {}

  /** Stores a failure and logs it, within the rate of its plugin. */
  readonly report: Report = ({ owner, hook, error }) => {
    const at = this.clock.now()
    const text = messageOf(error)
    if (this.add({ at, owner, where: hook, error: text }))
      this.logOf(owner).warn(`${owner} failed in ${hook}`, { error: text })
  }

  /** Oldest first. */
  readonly #faults = new Map<string, AttributedFault>()
  readonly #lines = new Map<string, TokenBucket>()

  /** Stores a fault. True when it is to be logged: at its 1st, 2nd, 4th, 8th … occurrence, within the rate of its plugin. */
  add(fault: Omit<AttributedFault, 'count'>): boolean {
    const error = clip(fault.error, LONGEST)
    const key = `${fault.owner}\n${fault.where}\n${error}`
    const count = (this.#faults.get(key)?.count ?? 0) + 1
    this.#faults.delete(key)
    this.#faults.set(key, { ...fault, error, count })
    const mine = [...this.#faults].filter(([, { owner }]) => owner === fault.owner)
    if (mine.length > KEPT) this.#faults.delete(mine[0]?.[0] as string)
    return Number.isInteger(Math.log2(count)) && this.#hasLine(fault.owner)
  }

  list(): readonly AttributedFault[] {
    return [...this.#faults.values()]
  }

  #hasLine(owner: string): boolean {
    const bucket = this.#lines.get(owner) ?? new TokenBucket(LINES, this.clock)
    this.#lines.set(owner, bucket)
    return bucket.tryTake(1)
  }
}
