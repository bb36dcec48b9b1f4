/**
 * A cache of the last read value per key, until it changes. A key is not cached while a transaction that changed it may roll back.
 */
export class Remembered<T> {
  readonly #known = new Map<string, T>()
  readonly #changing = new Set<string>()

  /** @param most maximum number of keys; beyond it the oldest entry is removed */
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

  /** The cached value without a read; undefined when there is none. */
  peek(key: string): T | undefined {
    return this.#known.get(key)
  }

  /** Must be called inside the transaction. The transaction commits or rolls back before deferred work runs. */
  changed(key: string): void {
    this.#known.delete(key)
    this.#changing.add(key)
    queueMicrotask(() => this.#changing.delete(key))
  }

  changedAll(): void {
    for (const key of [...this.#known.keys()]) this.changed(key)
  }
}
