import type { Distribution, MetricDeclaration, Sample } from '../api.js'

/** Maximum series per metric; further ones are combined in a series whose labels are all {@link REST}. */
export const MOST_SERIES = 2000
export const REST = 'other'

/** Series of a metric by label values. */
class SeriesOf<T> {
  readonly #all = new Map<string, { readonly labels: Readonly<Record<string, string>>; readonly of: T }>()

  constructor(
    private readonly names: readonly string[],
    private readonly make: () => T,
  ) {
    // A metric without labels has its single series from the start.
    if (names.length === 0) this.get([])
  }

  get(values: readonly string[]): T {
    const key = values.join('\n')
    return this.#all.get(key)?.of ?? this.#add(key, values)
  }

  #add(key: string, values: readonly string[]): T {
    if (this.#all.size >= MOST_SERIES && values.some(value => value !== REST)) return this.get(values.map(() => REST))
    const of = this.make()
    this.#all.set(key, { labels: Object.fromEntries(this.names.map((name, n) => [name, values[n] ?? ''])), of })
    return of
  }

  entries() {
    return [...this.#all.values()]
  }
}

/** A counter that events increment; labels are given in declaration order. */
export class Counter {
  readonly #series

  constructor({ labels = [] }: MetricDeclaration) {
    this.#series = new SeriesOf(labels, () => ({ n: 0 }))
  }

  add(values: readonly string[], n = 1): void {
    this.#series.get(values).n += n
  }

  readonly read = (): Sample[] => this.#series.entries().map(({ labels, of }) => ({ labels, value: of.n }))
}

/** A histogram that events fill. */
export class Histogram {
  readonly #series
  readonly #bounds: readonly number[]

  constructor({ labels = [], bounds = [] }: MetricDeclaration) {
    this.#bounds = bounds
    this.#series = new SeriesOf(labels, () => ({ counts: bounds.map(() => 0).concat(0), sum: 0 }))
  }

  observe(values: readonly string[], value: number): void {
    const series = this.#series.get(values)
    let bucket = 0
    while (bucket < this.#bounds.length && value > (this.#bounds[bucket] as number)) bucket++
    series.counts[bucket] = (series.counts[bucket] ?? 0) + 1
    series.sum += value
  }

  readonly read = (): Distribution[] =>
    this.#series.entries().map(({ labels, of }) => ({ labels, counts: of.counts, sum: of.sum }))
}
