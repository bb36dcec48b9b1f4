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
  /** By position. Kept between searches: maps made for each were a megabyte of garbage, and every fifteenth search collected it. */
  readonly #scores: Float64Array
  readonly #best: Float64Array
  readonly #hits: Uint8Array

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
    this.#scores = new Float64Array(tools.length)
    this.#best = new Float64Array(tools.length)
    this.#hits = new Uint8Array(tools.length)
  }

  /** Positions in the list of tools, best first; more matched words rank higher. */
  find(query: string): number[] {
    const [scores, hits, best] = [this.#scores.fill(0), this.#hits.fill(0), this.#best]
    const found: number[] = []
    for (const wanted of new Set(wordsOf(clip(query, MAX_QUERY)).slice(0, MAX_WORDS))) {
      const matched: number[] = []
      best.fill(0)
      for (const word of this.#beginningWith(wanted)) {
        const postings = this.#words.get(word) ?? []
        const rarity = Math.log(1 + this.tools.length / postings.length) * (word === wanted ? 1 : 0.5)
        for (const { at, weight } of postings) {
          const before = best[at] as number
          if (before === 0) matched.push(at)
          best[at] = Math.max(before, weight * rarity)
        }
      }
      for (const at of matched) {
        if (hits[at] === 0) found.push(at)
        ;(hits[at] as number)++
        ;(scores[at] as number) += best[at] as number
      }
    }
    const of = (numbers: Float64Array | Uint8Array, at: number) => numbers[at] as number
    return found.sort((a, b) => of(hits, b) - of(hits, a) || of(scores, b) - of(scores, a) || a - b)
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
