/** Who gets the next Ctrl-C: the last one that asked for it, once, or nobody, and then the command ends. */
export class Interrupts {
  #takers: (() => void)[] = []

  constructor(private readonly end: () => void) {}

  /** Returns what gives it back. */
  onNext(take: () => void): () => void {
    this.#takers.push(take)
    return () => {
      this.#takers = this.#takers.filter(other => other !== take)
    }
  }

  interrupt(): void {
    const take = this.#takers.pop()
    if (take) take()
    else this.end()
  }
}
