import { turn } from '../../kernel/plugin.js'

/** Lets so many pass in one turn of the event loop, the others in the next ones, in the order in which they came. */
export class Pace {
  #left: number
  #renewing = false
  readonly #waiting: (() => void)[] = []

  constructor(private readonly perTurn: number) {
    this.#left = perTurn
  }

  async pass(): Promise<void> {
    void this.#renew()
    if (this.#left > 0) this.#left--
    else await new Promise<void>(resolve => this.#waiting.push(resolve))
  }

  async #renew(): Promise<void> {
    if (this.#renewing) return
    this.#renewing = true
    do {
      await turn()
      const passing = this.#waiting.splice(0, this.perTurn)
      this.#left = this.perTurn - passing.length
      for (const pass of passing) pass()
    } while (this.#left < this.perTurn)
    this.#renewing = false
  }
}
