/**
 * Tells who runs a hook that nobody waits for its answer any more. An AbortController does the same, and takes longer to make
 * and to collect than a warm program takes to answer.
 */
export class Cutoff {
  #isOver = false
  #told: (() => void) | undefined

  /** Calls `fn` when it is over, unless it is by now; one at a time is told, `undefined` ends that. */
  tell(fn: (() => void) | undefined): void {
    this.#told = fn
  }

  /** Throws when it is over. */
  check(): void {
    if (this.#isOver) throw new Error('nobody waits for the answer of the hook any more')
  }

  /** Nobody waits from here on. */
  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#told?.()
  }
}
