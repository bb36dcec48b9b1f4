import * as v from 'valibot'

const Stored = v.array(v.tuple([v.number(), v.number()]))

/**
 * Ranges of a journal that were removed from the conversation. A journal is append-only: removed events stay on disk and are hidden
 * from readers.
 */
export class Cuts {
  readonly #stretches: readonly (readonly [from: number, through: number])[]

  /** @param column the result of {@link toString}; null for none */
  constructor(column: string | null = null) {
    this.#stretches = column === null ? [] : v.parse(Stored, JSON.parse(column))
  }

  get none(): boolean {
    return this.#stretches.length === 0
  }

  has(sequence: number): boolean {
    return this.#stretches.some(([from, through]) => from <= sequence && sequence <= through)
  }

  /** Adds a range; contained and directly preceding ranges are merged into it. */
  with(from: number, through: number): Cuts {
    const apart = this.#stretches.filter(([, end]) => end < from - 1)
    const start = Math.min(from, ...this.#stretches.filter(([, end]) => end >= from - 1).map(([first]) => first))
    return new Cuts(JSON.stringify([...apart, [start, through]]))
  }

  toString(): string {
    return JSON.stringify(this.#stretches)
  }
}
