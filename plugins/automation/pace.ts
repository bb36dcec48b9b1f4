import { turn } from '../../kernel/plugin.js'

/** Lets so many pass in one turn of the event loop, the others in the next ones: those who hurry first, else as they came. */
export class Pace {
  #left: number
  #renewing = false
  readonly #hurrying: (() => void)[] = []
  readonly #waiting: (() => void)[] = []

  constructor(private readonly perTurn: number) {
    this.#left = perTurn
  }

  async pass(hurries = false): Promise<void> {
    void this.#renew()
    if (this.#left > 0) this.#left--
    else await new Promise<void>(resolve => (hurries ? this.#hurrying : this.#waiting).push(resolve))
  }

  async #renew(): Promise<void> {
    if (this.#renewing) return
    this.#renewing = true
    do {
      await turn()
      const first = this.#hurrying.splice(0, this.perTurn)
      const passing = [...first, ...this.#waiting.splice(0, this.perTurn - first.length)]
      this.#left = this.perTurn - passing.length
      for (const pass of passing) pass()
    } while (this.#left < this.perTurn)
    this.#renewing = false
  }
}
