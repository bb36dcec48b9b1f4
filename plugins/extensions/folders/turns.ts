/** Work on one name comes one after the other; names do not wait for each other. */
export class Turns {
  /** By name the end of all work so far. */
  readonly #last = new Map<string, Promise<void>>()

  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const done = (this.#last.get(name) ?? Promise.resolve()).then(work)
    const settled = done.then(
      () => {},
      () => {},
    )
    this.#last.set(name, settled)
    try {
      return await done
    } finally {
      if (this.#last.get(name) === settled) this.#last.delete(name)
    }
  }
}
