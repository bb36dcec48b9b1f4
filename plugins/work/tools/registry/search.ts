import { clip } from '../../../../kernel/kit/text.js'
import type { OfferedTool } from '../api.js'

/** Weight of a query word by its place: id, title, tag or description. */
const WEIGHTS = { id: 8, title: 5, tags: 4, description: 1 } as const
const MAX_WORDS = 16
const MAX_QUERY = 500

interface Posting {
  readonly at: number
  readonly weight: number
}

/** Finds tools by words. A word matches whole or as a prefix; rare words count more. */
export class SearchIndex {
  readonly #words = new Map<string, Posting[]>()
  readonly #sorted: readonly string[]

  constructor(private readonly tools: readonly OfferedTool[]) {
    for (const [at, { descriptor }] of tools.entries()) {
      const weights = new Map<string, number>()
      const add = (text: string, weight: number) => {
        for (const word of wordsOf(text)) weights.set(word, Math.max(weights.get(word) ?? 0, weight))
      }
      add(descriptor.id, WEIGHTS.id)
      add(descriptor.title ?? '', WEIGHTS.title)
      for (const tag of [...(descriptor.tags ?? []), ...(descriptor.toolsets ?? [])]) add(tag, WEIGHTS.tags)
      add(descriptor.description, WEIGHTS.description)
      for (const [word, weight] of weights) {
        const postings = this.#words.get(word)
        if (postings) postings.push({ at, weight })
        else this.#words.set(word, [{ at, weight }])
      }
    }
    this.#sorted = [...this.#words.keys()].sort()
  }

  /** Positions in the list of tools, best first; more matched words rank higher. */
  find(query: string): number[] {
    const scores = new Map<number, { hits: number; score: number }>()
    for (const wanted of new Set(wordsOf(clip(query, MAX_QUERY)).slice(0, MAX_WORDS))) {
      const best = new Map<number, number>()
      for (const word of this.#beginningWith(wanted)) {
        const postings = this.#words.get(word) ?? []
        const rarity = Math.log(1 + this.tools.length / postings.length) * (word === wanted ? 1 : 0.5)
        for (const { at, weight } of postings) best.set(at, Math.max(best.get(at) ?? 0, weight * rarity))
      }
      for (const [at, score] of best) {
        const known = scores.get(at) ?? { hits: 0, score: 0 }
        scores.set(at, { hits: known.hits + 1, score: known.score + score })
      }
    }
    return [...scores].sort(([a, x], [b, y]) => y.hits - x.hits || y.score - x.score || a - b).map(([at]) => at)
  }

  *#beginningWith(wanted: string): Generator<string> {
    let [low, high] = [0, this.#sorted.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#sorted[middle] as string) < wanted) low = middle + 1
      else high = middle
    }
    for (let at = low; this.#sorted[at]?.startsWith(wanted); at++) yield this.#sorted[at] as string
  }
}

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
