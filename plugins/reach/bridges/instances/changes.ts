/**
 * Changed instances by position, from which streams read missed changes. Positions increase across restarts of the
 * daemon.
 */
export class Changes {
  readonly #latest = new Map<string, number>()
  readonly #begin: number
  #at: number
  #next: { readonly happened: Promise<void>; readonly wake: () => void } | undefined

  /** @param begin time of the start, so that positions of an earlier process can be recognized */
  constructor(begin: number) {
    this.#begin = begin
    this.#at = begin
  }

  get last(): number {
    return this.#at
  }

  /** Records a change of an instance and wakes the readers. */
  touch(id: string): void {
    this.#latest.set(id, ++this.#at)
    const next = this.#next
    this.#next = undefined
    next?.wake()
  }

  /** The given instances that changed after a position; undefined if unknown. */
  since(position: number, ids: readonly string[]): string[] | undefined {
    if (position < this.#begin) return undefined
    return ids.filter(id => (this.#latest.get(id) ?? this.#begin) > position)
  }

  /** Resolves at the next change. */
  next(): Promise<void> {
    let wake = () => {}
    this.#next ??= { happened: new Promise<void>(resolve => (wake = resolve)), wake: () => wake() }
    return this.#next.happened
  }
}
