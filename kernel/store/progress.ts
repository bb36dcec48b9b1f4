/** A growing number and the callbacks that wait for goals; goals are requested in ascending order. */
export class Progress {
  #failure: Error | undefined
  readonly #waiters: { readonly goal: number; readonly done: (error?: Error) => void }[] = []

  constructor(public reached: number) {}

  /** Calls `done` when the goal is reached, in the order of the calls, or with the error. */
  when(goal: number, done: (error?: Error) => void): void {
    if (this.#failure !== undefined || this.reached >= goal) done(this.#failure)
    else this.#waiters.push({ goal, done })
  }

  reach(goal: number): Promise<void> {
    return new Promise((resolve, reject) => this.when(goal, error => (error ? reject(error) : resolve())))
  }

  advance(to: number): void {
    this.reached = Math.max(this.reached, to)
    const waiting = this.#waiters.findIndex(({ goal }) => goal > this.reached)
    // Removed first: a callback may add to the list.
    for (const { done } of this.#waiters.splice(0, waiting < 0 ? this.#waiters.length : waiting)) done()
  }

  /** Rejects all current waiters; later ones wait. */
  refuse(error: Error): void {
    for (const { done } of this.#waiters.splice(0)) done(error)
  }

  /** Rejects all current and later waiters. */
  fail(error: Error): void {
    this.#failure = error
    for (const { done } of this.#waiters.splice(0)) done(error)
  }
}
