interface Taker {
  readonly take: () => void
  /** It takes other ends than Ctrl-C too. */
  readonly anyEnd: boolean
}

/** Who is told that the command is to end: the last one that asked for it, once, or nobody, and then the command ends. */
export class Interrupts {
  #takers: Taker[] = []
  /** Who took an end, and has not given it back: it is ending. */
  #ending: Taker | undefined

  constructor(private readonly end: () => void) {}

  /** Returns what gives it back. */
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

  /** SIGTERM, or the terminal or whoever reads is gone: that comes more than once, and says the same each time. */
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
