/** Waiters for the next event. There may be thousands per event, so each signal gets one listener only. */
export class Followers {
  readonly #waiting = new Set<() => void>()
  readonly #bySignal = new WeakMap<AbortSignal, Set<() => void>>()

  /** Resolves at the next {@link wake}, or when the signal aborts. */
  next(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve()
    const ofSignal = this.#bySignal.get(signal) ?? this.#listen(signal)
    return new Promise(resolve => {
      const done = () => {
        this.#waiting.delete(done)
        ofSignal.delete(done)
        resolve()
      }
      this.#waiting.add(done)
      ofSignal.add(done)
    })
  }

  wake(): void {
    for (const done of [...this.#waiting]) done()
  }

  #listen(signal: AbortSignal): Set<() => void> {
    const waiting = new Set<() => void>()
    this.#bySignal.set(signal, waiting)
    signal.addEventListener('abort', () => [...waiting].forEach(done => void done()), { once: true })
    return waiting
  }
}
