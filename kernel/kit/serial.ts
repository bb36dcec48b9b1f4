import type { Awaitable } from '../contract/basics.js'

/** Works on one key run one after the other, in the order in which they come; keys do not wait for each other. */
export class SerialBy {
  /** By key the end of all work so far; an idle key has none. */
  readonly #last = new Map<string, Promise<void>>()

  /** Keys on which something is being done. */
  get size(): number {
    return this.#last.size
  }

  /**
   * Resolves or rejects as the work does; one that fails fails its caller alone. The work must not wait for another one of its
   * key, which would wait for it.
   */
  run<T>(key: string, work: () => Awaitable<T>): Promise<T> {
    const done = (this.#last.get(key) ?? Promise.resolve()).then(work)
    const forget = () => void (this.#last.get(key) === ended && this.#last.delete(key))
    const ended = done.then(forget, forget)
    this.#last.set(key, ended)
    return done
  }

  /** Resolves when all works have ended that have come so far; never rejects. */
  async idle(): Promise<void> {
    await Promise.all(this.#last.values())
  }
}

/** Runs works one after the other: {@link SerialBy} with one key. */
export class Serial {
  readonly #queue = new SerialBy()

  /** {@link SerialBy.run} */
  run<T>(work: () => Awaitable<T>): Promise<T> {
    return this.#queue.run('', work)
  }

  /** {@link SerialBy.idle} */
  idle(): Promise<void> {
    return this.#queue.idle()
  }
}
