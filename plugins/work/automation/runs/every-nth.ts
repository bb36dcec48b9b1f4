/** Maximum number of ids counted at a time; with more in turn, every call is a first one. */
const COUNTED = 10_000

/** True on the first call for an id and on every n-th call after it: for work that need not be done every time. */
export class EveryNth {
  readonly #since = new Map<string, number>()

  constructor(private readonly n: number) {}

  due(id: string): boolean {
    const since = this.#since.get(id) ?? this.n
    if (this.#since.size >= COUNTED && !this.#since.has(id)) this.#since.clear()
    this.#since.set(id, since < this.n ? since + 1 : 1)
    return since >= this.n
  }
}
