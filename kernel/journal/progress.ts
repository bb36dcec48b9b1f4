interface Waiter {
  readonly goal: number
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

/** A number that only grows, and those who wait for it to reach theirs; goals are asked for in ascending order. */
export class Progress {
  #reached: number
  #failure: Error | undefined
  readonly #waiters: Waiter[] = []

  constructor(reached: number) {
    this.#reached = reached
  }

  get reached(): number {
    return this.#reached
  }

  reach(goal: number): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    if (this.#reached >= goal) return Promise.resolve()
    return new Promise((resolve, reject) => this.#waiters.push({ goal, resolve, reject }))
  }

  advance(to: number): void {
    this.#reached = Math.max(this.#reached, to)
    const waiting = this.#waiters.findIndex(({ goal }) => goal > this.#reached)
    for (const { resolve } of this.#waiters.splice(0, waiting < 0 ? this.#waiters.length : waiting)) resolve()
  }

  /** All who wait and all who come are rejected. */
  fail(error: Error): void {
    this.#failure = error
    for (const { reject } of this.#waiters.splice(0)) reject(error)
  }
}
