import type { Clock } from '../contract/basics.js'
import { messageOf } from '../contract/errors.js'
import type { Report } from '../contract/hook.js'
import type { Log } from '../contract/plugin-kernel.js'
import { type Rate, TokenBucket } from '../kit/rate.js'
import { clip } from '../kit/text.js'

/** A service that ended unexpectedly, a tap or a release that failed: attributed to its plugin. */
export interface AttributedFault {
  /** Epoch milliseconds of the last time. */
  readonly at: number
  /** How often the same has happened. */
  readonly count: number
  readonly owner: string
  readonly where: string
  readonly error: string
}

/** Different faults kept of one plugin, and lines written for it. */
const KEPT = 50
const LINES: Rate = { burst: 60, perSecond: 1 }
const LONGEST = 2000

/** Faults by plugin. Repetitions are counted, and the flood of one plugin takes no room from the others. */
export class FaultLog {
  constructor(
    private readonly clock: Pick<Clock, 'now' | 'monotonic'>,
    private readonly logOf: (owner: string) => Pick<Log, 'warn'>,
  ) {}

  /** Stores a failure with its owner. */
  readonly report: Report = ({ owner, hook, error }) => {
    const at = this.clock.now()
    const text = messageOf(error)
    if (this.add({ at, owner, where: hook, error: text }))
      this.logOf(owner).warn(`${owner} failed in ${hook}`, { error: text })
  }

  /** The latest last. */
  readonly #faults = new Map<string, AttributedFault>()
  readonly #lines = new Map<string, TokenBucket>()

  /** Says whether it is worth a line: at its 1st, 2nd, 4th, 8th … time, unless its owner has had its share. */
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
