/** Limit of messages between two parties per PAIR_MS. People do not reach it. */
export const PAIR_MESSAGES = 20
export const PAIR_MS = 60_000
/** Minimum number of messages from each of two programs. */
const PAIR_EACH = 5
/** Remembered pairs. */
const MAX_PAIRS = 10_000

/** Verdict on a message. `first`: its pair is stopped from now on, which is reported once. */
export type Pace = 'passes' | 'first' | 'stopped'

interface Pair {
  /** Times of the messages from the first and the second side. */
  readonly times: readonly [number[], number[]]
  /** Whether the last message was from the second side. */
  isAnswered: boolean
  stoppedUntil: number
}

/** Stops two programs that answer each other. Its state is lost on a restart. */
export class PairLimit {
  readonly #pairs = new Map<string, Pair>()

  /**
   * Records a message from a sender. All messages of a declared program count. From any other sender, only a message
   * after one of our answers counts, so that a person who writes many lines is not stopped.
   */
  came(key: string, isProgram: boolean, now: number): Pace {
    const pair = this.#of(key, now)
    if (pair.stoppedUntil > now) return 'stopped'
    if (isProgram || pair.isAnswered) pair.times[0].push(now)
    pair.isAnswered = false
    return this.#judge(pair, now, 0)
  }

  /** Records an answer to a sender. */
  answered(key: string, now: number): void {
    if (!this.#pairs.has(key)) return
    const pair = this.#of(key, now)
    pair.times[1].push(now)
    pair.isAnswered = true
  }

  /** Records a message between two programs: all messages count, once both sides have spoken. */
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
    // Moved to the end: the map is ordered by last use.
    if (known) this.#pairs.delete(key)
    const pair: Pair = known ?? { times: [[], []], isAnswered: false, stoppedUntil: 0 }
    this.#pairs.set(key, pair)
    for (const old of this.#pairs.keys()) if (this.#pairs.size > MAX_PAIRS) this.#pairs.delete(old)
    for (const times of pair.times) {
      const fresh = times.findIndex(at => at > now - PAIR_MS)
      times.splice(0, fresh < 0 ? times.length : fresh)
      // A single side can send any number of messages, so the list is bounded.
      if (times.length > PAIR_MESSAGES) times.splice(0, times.length - PAIR_MESSAGES)
    }
    return pair
  }
}
