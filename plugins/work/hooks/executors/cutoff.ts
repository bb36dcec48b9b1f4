/**
 * Signals that the answer of a hook is no longer awaited. An AbortController would do, but creating and collecting one takes
 * longer than a warm program takes to answer.
 */
export class Cutoff {
  #isOver = false
  #listener: (() => void) | undefined

  /** Sets the only listener, called at the cutoff; `undefined` removes it. */
  tell(fn: (() => void) | undefined): void {
    this.#listener = fn
  }

  /** Throws after the cutoff. */
  check(): void {
    if (this.#isOver) throw new Error('the hook timed out before its program was started')
  }

  /** Marks the cutoff. */
  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#listener?.()
  }
}
