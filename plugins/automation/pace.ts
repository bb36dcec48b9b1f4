import { turn } from '../../kernel/plugin.js'

/** Who does not hurry, of those that pass in one turn while there is more to hurry for: nothing stands still. */
const MEANWHILE = 1

/** Lets so many pass in one turn of the event loop, the others in the next ones: those who hurry first, else as they came. */
export class Pace {
  #left: number
  #renewing = false
  readonly #hurrying: (() => void)[] = []
  readonly #waiting: (() => void)[] = []

  /** @param isBehind there is more to come that hurries: who does not leaves the turns to it */
  constructor(
    private readonly perTurn: number,
    private readonly isBehind: () => boolean = () => false,
  ) {
    this.#left = perTurn
  }

  async pass(hurries = false): Promise<void> {
    void this.#renew()
    if (this.#left > 0 && (hurries || !this.isBehind())) this.#left--
    else await new Promise<void>(resolve => (hurries ? this.#hurrying : this.#waiting).push(resolve))
  }

  async #renew(): Promise<void> {
    if (this.#renewing) return
    this.#renewing = true
    do {
      await turn()
      const first = this.#hurrying.splice(0, this.perTurn)
      const room = this.perTurn - first.length
      const passing = [...first, ...this.#waiting.splice(0, this.isBehind() ? Math.min(room, MEANWHILE) : room)]
      this.#left = this.perTurn - passing.length
      for (const pass of passing) pass()
    } while (this.#left < this.perTurn || this.#waiting.length > 0)
    this.#renewing = false
  }
}
