/** Runs work that nobody waits for: so many at once, so many waiting, and what comes on top is refused. */
export class AsyncQueue {
  readonly #waiting: (() => Promise<void>)[] = []
  readonly #idle: (() => void)[] = []
  #running = 0
  #isClosed = false

  constructor(
    private readonly workers: number,
    private readonly size: number,
  ) {}

  /** False when there is no room. @param work must not reject */
  add(work: () => Promise<void>): boolean {
    if (this.#isClosed) return false
    if (this.#running < this.workers) void this.#run(work)
    else if (this.#waiting.length < this.size) this.#waiting.push(work)
    else return false
    return true
  }

  /** Takes nothing new; resolves when all of it has run. */
  async drain(): Promise<void> {
    this.#isClosed = true
    if (this.#running > 0) await new Promise<void>(resolve => this.#idle.push(resolve))
  }

  async #run(first: () => Promise<void>): Promise<void> {
    this.#running++
    for (let work: (() => Promise<void>) | undefined = first; work; work = this.#waiting.shift()) await work()
    this.#running--
    if (this.#running === 0) for (const wake of this.#idle.splice(0)) wake()
  }
}
