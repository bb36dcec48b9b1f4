/** What is due when, the earliest first; one time a key. Setting, deleting and taking the first cost O(log n). */
export class DueHeap {
  readonly #heap: { readonly key: string; readonly at: number }[] = []
  readonly #place = new Map<string, number>()

  get size(): number {
    return this.#heap.length
  }

  /** The earliest entry; among equal times the smaller key. */
  peek(): { readonly key: string; readonly at: number } | undefined {
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

  /** Takes the earliest entry out if it is due at `now`. */
  take(now: number): { readonly key: string; readonly at: number } | undefined {
    const first = this.#heap[0]
    if (first === undefined || first.at > now) return undefined
    this.delete(first.key)
    return first
  }

  #put(place: number, entry: { readonly key: string; readonly at: number }): void {
    this.#heap[place] = entry
    this.#place.set(entry.key, place)
  }

  #before(a: number, b: number): boolean {
    const [x, y] = [this.#heap[a], this.#heap[b]]
    if (x === undefined || y === undefined) return false
    return x.at < y.at || (x.at === y.at && x.key < y.key)
  }

  #swap(a: number, b: number): void {
    const [x, y] = [this.#heap[a], this.#heap[b]]
    if (x === undefined || y === undefined) return
    this.#put(a, y)
    this.#put(b, x)
  }

  #settle(start: number): void {
    let place = start
    for (let parent = (place - 1) >> 1; place > 0 && this.#before(place, parent); parent = (place - 1) >> 1) {
      this.#swap(place, parent)
      place = parent
    }
    for (;;) {
      const [left, right] = [2 * place + 1, 2 * place + 2]
      const child = this.#before(right, left) ? right : left
      if (!this.#before(child, place)) return
      this.#swap(child, place)
      place = child
    }
  }
}
