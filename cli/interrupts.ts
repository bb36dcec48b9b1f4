interface Taker {
  readonly take: () => void
  /** The taker also handles other ends than Ctrl-C. */
  readonly anyEnd: boolean
}

/** Interrupt handlers. The last registered one is called, once; without a handler the command ends. */
export class Interrupts {
  #takers: Taker[] = []
  /** The handler that is processing an end and has not been removed yet. */
  #ending: Taker | undefined

  constructor(private readonly end: () => void) {}

  /** Returns the function that removes the handler. */
  onNext(take: () => void, { anyEnd = false }: { readonly anyEnd?: boolean } = {}): () => void {
    const taker = { take, anyEnd }
    this.#takers.push(taker)
    return () => {
      this.#takers = this.#takers.filter(other => other !== taker)
      if (this.#ending === taker) this.#ending = undefined
    }
  }

  /** Ctrl-C. */
  interrupt(): void {
    const taker = this.#takers.pop()
    if (taker) this.#tell(taker)
    else this.end()
  }

  /** SIGTERM, or a closed terminal or pipe. These may occur several times with the same meaning. */
  terminate(end: () => void): void {
    if (this.#ending) return
    const taker = this.#takers.findLast(({ anyEnd }) => anyEnd)
    this.#takers = this.#takers.filter(other => other !== taker)
    if (taker) this.#tell(taker)
    else end()
  }

  #tell(taker: Taker): void {
    if (taker.anyEnd) this.#ending = taker
    taker.take()
  }
}
