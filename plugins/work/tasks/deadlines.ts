import { Alarm } from '../../../kernel/kit/alarm.js'
import { type Clock, messageOf } from '../../../kernel/plugin.js'
import type { K } from './needs.js'

/** The kinds of deadlines, in the order in which those that are due together are handled. */
const NAMES = ['budgets', 'wakes', 'runs', 'reviews'] as const
type Name = (typeof NAMES)[number]

/** Milliseconds between two passes of one kind: the rest of a batch and the remaining time of a budget can be arbitrarily short. */
const LEAST_MS = 100
/** Milliseconds until a failed pass is repeated. */
const RETRY_MS = 15_000

/** One kind of deadlines. */
export interface Deadline {
  /** The earliest deadline in the data, in epoch milliseconds; undefined: none. */
  readonly next: () => number | undefined
  /** Handles the expired deadlines. */
  readonly pass: () => Promise<unknown>
}

/**
 * One alarm for all deadlines: the ends of leases, blocks, reviews and budgets, and the next attempt to deliver a notification. A
 * change with a new deadline arms it; after each pass the next deadline is read from the data. Without a deadline there is no
 * timer.
 */
export class Deadlines {
  readonly #alarm: Alarm
  /** The times for which the alarm is armed. */
  readonly #at = new Map<string, number>()

  constructor(
    private readonly clock: Clock,
    private readonly log: Pick<K['log'], 'error'>,
  ) {
    this.#alarm = new Alarm(clock, { retryMs: RETRY_MS })
  }

  /** Arms the alarm for a deadline, unless it is armed for an earlier one; undefined: no deadline. */
  arm(name: Name, at: number | undefined): void {
    if (at === undefined || at >= (this.#at.get(name) ?? Number.POSITIVE_INFINITY)) return
    this.#at.set(name, at)
    this.#alarm.set(name, at)
  }

  /** Handles all deadlines once, and each again when it is due, until the signal aborts. */
  async run(signal: AbortSignal, kinds: Readonly<Record<Name, Deadline>>): Promise<void> {
    const armAll = () => {
      for (const name of NAMES) this.arm(name, this.clock.now())
    }
    const alarm = this.#alarm
    armAll()
    await alarm.run(signal, {
      fire: async keys => {
        for (const key of keys) this.#at.delete(key)
        for (const name of NAMES.filter(name => keys.includes(name))) {
          await kinds[name].pass()
          if (signal.aborted) return
          const next = kinds[name].next()
          this.arm(name, next && Math.max(next, this.clock.now() + LEAST_MS))
        }
      },
      failed: (error, keys) => {
        this.log.error(`deadlines of tasks were not handled (${keys.join(', ')}): ${messageOf(error)}`)
        for (const name of NAMES) if (keys.includes(name)) this.arm(name, this.clock.now() + RETRY_MS)
      },
      // The clock is watched only while deadlines exist. They came from the old clock, so all of them are read again.
      get setBack() {
        return alarm.size === 0 ? undefined : async () => armAll()
      },
    })
  }
}
