/** So many messages between two parties in so many milliseconds are no conversation of people. */
export const PAIR_MESSAGES = 20
export const PAIR_MS = 60_000
/** Where both sides are judged alike: so many of them come from either. */
const PAIR_EACH = 5
/** Pairs that are remembered. */
const MAX_PAIRS = 10_000

/** What becomes of a message. `first`: its pair is stopped from now on, which is to be said once. */
export type Pace = 'passes' | 'first' | 'stopped'

interface Pair {
  /** When messages of the first side came, and of the second one. */
  readonly times: readonly [number[], number[]]
  /** The last message was of the second side. */
  isAnswered: boolean
  stoppedUntil: number
}

/** Stops two programs that answer each other. What it knows does not survive a restart. */
export class PairLimit {
  readonly #pairs = new Map<string, Pair>()

  /**
   * A sender has written to us. Messages of a sender that says it is a program all count; of others those that follow an answer of
   * ours, so that a person who writes many lines is not stopped.
   */
  came(key: string, isProgram: boolean, now: number): Pace {
    const pair = this.#of(key, now)
    if (pair.stoppedUntil > now) return 'stopped'
    if (isProgram || pair.isAnswered) pair.times[0].push(now)
    pair.isAnswered = false
    return this.#judge(pair, now, 0)
  }

  /** We have answered a sender. */
  answered(key: string, now: number): void {
    if (!this.#pairs.has(key)) return
    const pair = this.#of(key, now)
    pair.times[1].push(now)
    pair.isAnswered = true
  }

  /** One of two programs has written to the other: all messages count, once both sides speak. */
  said(key: string, side: 0 | 1, now: number): Pace {
    const pair = this.#of(key, now)
    if (pair.stoppedUntil > now) return 'stopped'
    pair.times[side].push(now)
    return this.#judge(pair, now, PAIR_EACH)
  }

  #judge(pair: Pair, now: number, each: number): Pace {
    const [one, other] = pair.times
    if (one.length + other.length < PAIR_MESSAGES || Math.min(one.length, other.length) < each) return 'passes'
    one.length = 0
    other.length = 0
    pair.stoppedUntil = now + PAIR_MS
    return 'first'
  }

  #of(key: string, now: number): Pair {
    const known = this.#pairs.get(key)
    // The pair that was heard of last stands last.
    if (known) this.#pairs.delete(key)
    const pair: Pair = known ?? { times: [[], []], isAnswered: false, stoppedUntil: 0 }
    this.#pairs.set(key, pair)
    for (const old of this.#pairs.keys()) if (this.#pairs.size > MAX_PAIRS) this.#pairs.delete(old)
    for (const times of pair.times) {
      const fresh = times.findIndex(at => at > now - PAIR_MS)
      times.splice(0, fresh < 0 ? times.length : fresh)
      // One side alone can be of any length.
      if (times.length > PAIR_MESSAGES) times.splice(0, times.length - PAIR_MESSAGES)
    }
    return pair
  }
}
