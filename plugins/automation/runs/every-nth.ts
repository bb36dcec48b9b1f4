/** Ids that are counted; any other is due each time. */
const COUNTED = 1000

/** Says at the first time of an id and at every n-th after it that it is due: for work that need not be done each time. */
export class EveryNth {
  readonly #since = new Map<string, number>()

  constructor(private readonly n: number) {}

  due(id: string): boolean {
    const since = this.#since.get(id) ?? this.n
    if (this.#since.size >= COUNTED) this.#since.clear()
    this.#since.set(id, since < this.n ? since + 1 : 1)
    return since >= this.n
  }
}
