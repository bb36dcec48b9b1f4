/** Which instances changed, by position: streams read from it what they missed. Positions grow over restarts of the daemon. */
export class Changes {
  readonly #latest = new Map<string, number>()
  readonly #begin: number
  #at: number
  #next: { readonly happened: Promise<void>; readonly wake: () => void } | undefined

  /** @param begin the time of the start, so that a position of an earlier process is known to be one */
  constructor(begin: number) {
    this.#begin = begin
    this.#at = begin
  }

  get last(): number {
    return this.#at
  }

  /** Says that an instance changed, and wakes the readers. */
  touch(id: string): void {
    this.#latest.set(id, ++this.#at)
    const next = this.#next
    this.#next = undefined
    next?.wake()
  }

  /** Those of the instances that changed behind a position; undefined where that is not known. */
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
