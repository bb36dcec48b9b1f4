import { turn } from '../../../kernel/plugin.js'

/** Non-urgent steps per turn while urgent work is pending, so that they are never starved. */
const MEANWHILE = 1

/** Limits the steps per turn of the event loop. Urgent steps go first, the others in order of arrival. */
export class Pace {
  #left: number
  #renewing = false
  readonly #hurrying: (() => void)[] = []
  readonly #waiting: (() => void)[] = []

  /** @param isBehind whether urgent work is pending; other steps then yield to it */
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
