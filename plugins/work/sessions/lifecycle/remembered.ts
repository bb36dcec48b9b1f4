/** What was read last of each key, until it is changed. A key is not kept while a transaction that changed it may be undone. */
export class Remembered<T> {
  readonly #known = new Map<string, T>()
  readonly #changing = new Set<string>()

  /** @param most keys that are kept; beyond them the one that was read first goes */
  constructor(
    private readonly read: (key: string) => T,
    private readonly most = 512,
  ) {}

  get(key: string): T {
    if (this.#known.has(key)) return this.#known.get(key) as T
    const value = this.read(key)
    if (this.#changing.has(key)) return value
    const [oldest] = this.#known.size < this.most ? [] : this.#known.keys()
    if (oldest !== undefined) this.#known.delete(oldest)
    this.#known.set(key, value)
    return value
  }

  /** Undefined as well where nothing is remembered. */
  peek(key: string): T | undefined {
    return this.#known.get(key)
  }

  /** To be called in the transaction: it is over, or undone, before anything that was put off is done. */
  changed(key: string): void {
    this.#known.delete(key)
    this.#changing.add(key)
    queueMicrotask(() => this.#changing.delete(key))
  }

  changedAll(): void {
    for (const key of [...this.#known.keys()]) this.changed(key)
  }
}
