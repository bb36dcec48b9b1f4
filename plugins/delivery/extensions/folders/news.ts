/** Names of extensions that changed, until others were told. */
export class News {
  readonly #names = new Set<string>()
  #anyway = false
  #telling: Promise<void> | undefined

  constructor(private readonly call: (names: readonly string[]) => Promise<void>) {}

  note(name: string): void {
    this.#names.add(name)
  }

  /** Others are told also when nothing changed. */
  tellAnyway(): Promise<void> {
    this.#anyway = true
    return this.tell()
  }

  /** Resolves when others know all that was noted; what changes meanwhile is told of together, afterwards. */
  async tell(): Promise<void> {
    // What somebody else tells of just now is known when that has ended.
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
