type Due = { readonly key: string; readonly at: number }

/** Keys by due time, one time per key. Setting, deleting and taking the earliest cost O(log n). */
export class DueHeap {
  readonly #heap: Due[] = []
  readonly #place = new Map<string, number>()

  get size(): number {
    return this.#heap.length
  }

  /** The earliest entry; among equal times the smaller key. */
  peek(): Due | undefined {
    return this.#heap[0]
  }

  get(key: string): number | undefined {
    const place = this.#place.get(key)
    return place === undefined ? undefined : this.#heap[place]?.at
  }

  /** Sets or moves the time of a key. */
  set(key: string, at: number): void {
    const place = this.#place.get(key) ?? this.#heap.length
    this.#put(place, { key, at })
    this.#settle(place)
  }

  delete(key: string): void {
    const place = this.#place.get(key)
    if (place === undefined) return
    this.#place.delete(key)
    const last = this.#heap.pop()
    if (last === undefined || last.key === key) return
    this.#put(place, last)
    this.#settle(place)
  }

  /** Removes and returns the earliest entry if it is due at `now`. */
  take(now: number): Due | undefined {
    const first = this.#heap[0]
    if (first === undefined || first.at > now) return undefined
    this.delete(first.key)
    return first
  }

  #put(place: number, entry: Due): void {
    this.#heap[place] = entry
    this.#place.set(entry.key, place)
  }

  #settle(start: number): void {
    const before = (a: number, b: number) => isBefore(this.#heap[a], this.#heap[b])
    const swap = (a: number, b: number) => {
      const [x, y] = [this.#heap[a], this.#heap[b]] as [Due, Due]
      this.#put(a, y)
      this.#put(b, x)
    }
    let place = start
    for (let parent = (place - 1) >> 1; place > 0 && before(place, parent); parent = (place - 1) >> 1) {
      swap(place, parent)
      place = parent
    }
    for (;;) {
      const [left, right] = [2 * place + 1, 2 * place + 2]
      const child = before(right, left) ? right : left
      if (!before(child, place)) return
      swap(child, place)
      place = child
    }
  }
}

/** False if either entry is missing. */
const isBefore = (x: Due | undefined, y: Due | undefined) =>
  x !== undefined && y !== undefined && (x.at < y.at || (x.at === y.at && x.key < y.key))
