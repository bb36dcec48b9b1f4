/** So many messages between a sender and us in so many milliseconds are no conversation of people. */
export const PAIR_MESSAGES = 20
export const PAIR_MS = 60_000
/** Pairs that are remembered. */
const MAX_PAIRS = 10_000

interface Pair {
  readonly times: number[]
  /** The last message was an answer of ours. */
  isOurs: boolean
  stoppedUntil: number
}

/**
 * Stops two bots that answer each other. Messages of a sender that says it is a bot all count; of others those that follow an answer,
 * so that a person who writes many lines is no bot.
 */
export class PairLimit {
  readonly #pairs = new Map<string, Pair>()

  /** A sender has written. `first`: it is stopped from this message on, which is to be said once. */
  came(key: string, isBot: boolean, now: number): 'passes' | 'first' | 'stopped' {
    const pair = this.#of(key)
    if (pair.stoppedUntil > now) return 'stopped'
    if (isBot || pair.isOurs) pair.times.push(now)
    pair.isOurs = false
    this.#trim(pair, now)
    if (pair.times.length < PAIR_MESSAGES) return 'passes'
    pair.times.length = 0
    pair.stoppedUntil = now + PAIR_MS
    return 'first'
  }

  /** We have answered a sender. */
  answered(key: string, now: number): void {
    const pair = this.#pairs.get(key)
    if (!pair) return
    pair.times.push(now)
    pair.isOurs = true
    this.#trim(pair, now)
  }

  #trim({ times }: Pair, now: number): void {
    while (times.length > 0 && (times[0] as number) <= now - PAIR_MS) times.shift()
  }

  #of(key: string): Pair {
    const known = this.#pairs.get(key)
    // The pair that was heard of last stands last.
    if (known) this.#pairs.delete(key)
    const pair = known ?? { times: [], isOurs: false, stoppedUntil: 0 }
    this.#pairs.set(key, pair)
    for (const old of this.#pairs.keys()) if (this.#pairs.size > MAX_PAIRS) this.#pairs.delete(old)
    return pair
  }
}
