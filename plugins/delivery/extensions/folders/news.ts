/** Names of changed extensions that have not been announced yet. */
export class News {
  readonly #names = new Set<string>()
  #anyway = false
  #telling: Promise<void> | undefined

  constructor(private readonly call: (names: readonly string[]) => Promise<void>) {}

  note(name: string): void {
    this.#names.add(name)
  }

  /** Announces even an empty set. */
  tellAnyway(): Promise<void> {
    this.#anyway = true
    return this.tell()
  }

  /**
   * Resolves when all names noted so far have been announced; changes during an announcement are announced together
   * after it.
   */
  async tell(): Promise<void> {
    // An announcement that is already running is awaited as well.
    while (this.#telling !== undefined || this.#names.size > 0 || this.#anyway) {
      this.#telling ??= Promise.resolve().then(async () => {
        const names = [...this.#names].sort()
        this.#names.clear()
        this.#anyway = false
        await this.call(names).finally(() => {
          this.#telling = undefined
        })
      })
      await this.#telling
    }
  }
}
