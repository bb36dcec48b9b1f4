type Due = { readonly key: string; readonly at: number }

/** Keys by due time, one time per key. Setting, deleting and taking the earliest cost O(log n). */
export class DueHeap {
  readonly #heap: Due[] = []
  readonly #indexes = new Map<string, number>()

  get size(): number {
    return this.#heap.length
  }

  /** The earliest entry; among equal times the smaller key. */
  peek(): Due | undefined {
    return this.#heap[0]
  }

  get(key: string): number | undefined {
    const index = this.#indexes.get(key)
    return index === undefined ? undefined : this.#heap[index]?.at
  }

  /** Sets or moves the time of a key. */
  set(key: string, at: number): void {
    const index = this.#indexes.get(key) ?? this.#heap.length
    this.#put(index, { key, at })
    this.#settle(index)
  }

  delete(key: string): void {
    const index = this.#indexes.get(key)
    if (index === undefined) return
    this.#indexes.delete(key)
    const last = this.#heap.pop()
    if (last === undefined || last.key === key) return
    this.#put(index, last)
    this.#settle(index)
  }

  /** Removes and returns the earliest entry if it is due at `now`. */
  take(now: number): Due | undefined {
    const first = this.#heap[0]
    if (first === undefined || first.at > now) return undefined
    this.delete(first.key)
    return first
  }

  #put(index: number, entry: Due): void {
    this.#heap[index] = entry
    this.#indexes.set(entry.key, index)
  }

  #settle(start: number): void {
    const before = (a: number, b: number) => isBefore(this.#heap[a], this.#heap[b])
    const swap = (a: number, b: number) => {
      const [x, y] = [this.#heap[a], this.#heap[b]] as [Due, Due]
      this.#put(a, y)
      this.#put(b, x)
    }
    let index = start
    for (let parent = (index - 1) >> 1; index > 0 && before(index, parent); parent = (index - 1) >> 1) {
      swap(index, parent)
      index = parent
    }
    for (;;) {
      const [left, right] = [2 * index + 1, 2 * index + 2]
      const child = before(right, left) ? right : left
      if (!before(child, index)) return
      swap(child, index)
      index = child
    }
  }
}

/** False if either entry is missing. */
const isBefore = (x: Due | undefined, y: Due | undefined) =>
  x !== undefined && y !== undefined && (x.at < y.at || (x.at === y.at && x.key < y.key))
