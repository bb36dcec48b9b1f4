import type { Db, Tx } from '../../../kernel/plugin.js'

/** Maximum number of entries; a full cache is emptied. */
const MOST = 10_000

/**
 * Facts of the tables in memory, so that frequent operations need not read them. A transaction reports each change: the entry is
 * dropped at once, and the new value is kept when the change is durable. So a transaction that is rolled back leaves no entry
 * behind, only a fact that is read from the tables until its next change.
 */
export class Cache<V> {
  readonly #values = new Map<string, V>()
  /** The latest change of each fact that is not durable yet. */
  readonly #changes = new Map<string, object>()
  /** A change of all facts that is not durable yet. */
  #all: object | undefined

  constructor(private readonly db: Db) {}

  get(key: string): V | undefined {
    return this.#values.get(key)
  }

  /** The fact; `load` reads it from the tables. */
  read(key: string, load: () => V): V {
    const known = this.#values.get(key)
    if (known !== undefined) return known
    const value = load()
    if (this.#all === undefined && !this.#changes.has(key)) this.#set(key, value)
    return value
  }

  /** The transaction changes a fact. @param value undefined: the next reader reads it from the tables */
  changed(t: Tx, key: string, value?: V): void {
    const change = {}
    this.#values.delete(key)
    if (this.#changes.size >= MOST) this.changedAll(t)
    this.#changes.set(key, change)
    this.db.onDurable(t, () => {
      if (this.#changes.get(key) !== change) return
      this.#changes.delete(key)
      if (value !== undefined) this.#set(key, value)
    })
  }

  /** The transaction changes many facts. */
  changedAll(t: Tx): void {
    const change = {}
    this.#values.clear()
    this.#changes.clear()
    this.#all = change
    this.db.onDurable(t, () => {
      if (this.#all === change) this.#all = undefined
    })
  }

  #set(key: string, value: V): void {
    if (this.#values.size >= MOST) this.#values.clear()
    this.#values.set(key, value)
  }
}
