import * as v from 'valibot'

const Stored = v.array(v.tuple([v.number(), v.number()]))

/**
 * Stretches of a journal that were taken out of the conversation. A journal only grows: what is cut stays on the disk, and no
 * reader sees it.
 */
export class Cuts {
  readonly #stretches: readonly (readonly [from: number, through: number])[]

  /** @param column what {@link toString} gave; null for none */
  constructor(column: string | null = null) {
    this.#stretches = column === null ? [] : v.parse(Stored, JSON.parse(column))
  }

  get none(): boolean {
    return this.#stretches.length === 0
  }

  has(sequence: number): boolean {
    return this.#stretches.some(([from, through]) => from <= sequence && sequence <= through)
  }

  /** With one more; those inside of it, or right before it, become one with it. */
  with(from: number, through: number): Cuts {
    const apart = this.#stretches.filter(([, end]) => end < from - 1)
    const start = Math.min(from, ...this.#stretches.filter(([, end]) => end >= from - 1).map(([first]) => first))
    return new Cuts(JSON.stringify([...apart, [start, through]]))
  }

  toString(): string {
    return JSON.stringify(this.#stretches)
  }
}
