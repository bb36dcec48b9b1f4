/** A bounded queue: runs `workers` items concurrently, queues `size` more and refuses the rest. */
export class AsyncQueue {
  readonly #waiting: (() => Promise<void>)[] = []
  readonly #idle: (() => void)[] = []
  #running = 0
  #isClosed = false

  constructor(
    private readonly workers: number,
    private readonly size: number,
  ) {}

  /** False when the queue is full. @param work must not reject */
  add(work: () => Promise<void>): boolean {
    if (this.#isClosed) return false
    if (this.#running < this.workers) void this.#run(work)
    else if (this.#waiting.length < this.size) this.#waiting.push(work)
    else return false
    return true
  }

  /** Accepts no more work; resolves when all accepted work has finished. */
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
