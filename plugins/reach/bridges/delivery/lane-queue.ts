/** What may wait at the same time in the worker of a route. */
export const CAPACITY = 4

/** Something that shows an answer while it grows: lost without harm, since its end is delivered anyway. */
export interface Passing {
  /** A later one of the same key takes its place. */
  readonly key: string
  readonly kind: 'start' | 'delta' | 'progress'
}

/** Why something was not delivered. */
export type Dropped = 'coalesced' | 'queue_saturated'

/**
 * What waits in the worker of one route beside the durable parts: at most {@link CAPACITY} together. Where there is no room a delta
 * gives way; what ends an answer always enters.
 */
export class LaneQueue<T extends Passing> {
  readonly #waiting: T[] = []

  get size(): number {
    return this.#waiting.length
  }

  peek(): T | undefined {
    return this.#waiting[0]
  }

  shift(): T | undefined {
    return this.#waiting.shift()
  }

  /** Adds one. @param durable parts that wait as well; returns why something was dropped, once for each */
  offer(item: T, durable: number): readonly Dropped[] {
    const before = this.#waiting.findIndex(({ key }) => key === item.key)
    if (before >= 0) {
      this.#waiting[before] = item
      return ['coalesced']
    }
    const dropped = this.makeRoom(durable + 1)
    if (durable + this.#waiting.length >= CAPACITY) return [...dropped, 'queue_saturated']
    this.#waiting.push(item)
    return dropped
  }

  /** Durable parts have come: a delta gives way while there are too many. */
  makeRoom(durable: number): readonly Dropped[] {
    const dropped: Dropped[] = []
    while (durable + this.#waiting.length > CAPACITY) {
      const delta = this.#waiting.findIndex(({ kind }) => kind === 'delta')
      if (delta < 0) break
      this.#waiting.splice(delta, 1)
      dropped.push('coalesced')
    }
    return dropped
  }

  /** Takes away what is of no more use; returns whether something was there. */
  delete(key: string): boolean {
    const at = this.#waiting.findIndex(item => item.key === key)
    if (at >= 0) this.#waiting.splice(at, 1)
    return at >= 0
  }
}
