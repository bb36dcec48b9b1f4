/** Maximum number of waiting items per route. */
export const CAPACITY = 4

/** An intermediate state of a growing answer: it can be dropped, because the final state is delivered anyway. */
export interface Passing {
  /** A later item with the same key replaces it. */
  readonly key: string
  readonly kind: 'start' | 'delta' | 'progress'
}

/** Why an item was dropped. */
export type Dropped = 'coalesced' | 'queue_saturated'

/**
 * Items that wait on one route in addition to the durable parts: at most {@link CAPACITY} together. Beyond that, deltas
 * are dropped; the end of an answer is always accepted.
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

  /** Adds an item. @param durable number of waiting parts; returns a reason for each dropped item */
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

  /** Drops deltas while there are too many items beside the durable parts. */
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

  /** Removes an obsolete item; returns whether it existed. */
  delete(key: string): boolean {
    const at = this.#waiting.findIndex(item => item.key === key)
    if (at >= 0) this.#waiting.splice(at, 1)
    return at >= 0
  }
}
