import type { Awaitable } from '../contract/basics.js'

/** Runs the calls for one key one at a time, in order of arrival; different keys do not wait for each other. */
export class SerialBy {
  /** The end of all calls so far, by key; idle keys are absent. */
  readonly #last = new Map<string, Promise<void>>()

  /** Number of busy keys. */
  get size(): number {
    return this.#last.size
  }

  /**
   * Settles like the work; a failure affects only its caller. The work must not wait for another call of the same key: that would
   * be a deadlock.
   */
  run<T>(key: string, work: () => Awaitable<T>): Promise<T> {
    const done = (this.#last.get(key) ?? Promise.resolve()).then(work)
    const forget = () => void (this.#last.get(key) === ended && this.#last.delete(key))
    const ended = done.then(forget, forget)
    this.#last.set(key, ended)
    return done
  }

  /** Resolves when all calls so far have ended; never rejects. */
  async idle(): Promise<void> {
    await Promise.all(this.#last.values())
  }
}

/** Runs calls one at a time: {@link SerialBy} with one key. */
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
