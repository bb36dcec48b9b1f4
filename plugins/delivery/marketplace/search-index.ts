import type { Entry } from './feed.js'

interface Line {
  readonly entry: Entry
  readonly name: string
  /** Searchable text in lower case. */
  readonly text: string
}

/** A search index of one feed. */
export class SearchIndex {
  /** By downloads, then by name. */
  readonly #lines: readonly Line[]
  /** Entries for an empty query: curated ones first. */
  readonly #idle: readonly Entry[]

  constructor(entries: readonly Entry[]) {
    const sorted = entries.toSorted((a, b) => popularity(b) - popularity(a) || byName(a, b))
    this.#lines = sorted.map(entry => {
      const name = folded(`${entry.name} ${entry.display_name ?? ''}`).trim()
      const { description, author = '', tags, id } = entry
      return { entry, name, text: `${name} ${folded(`${id} ${tags.join(' ')} ${author} ${description}`)}` }
    })
    this.#idle = sorted.toSorted((a, b) => Number(b.curated) - Number(a.curated))
  }

  /** Entries that contain every word of a query, best first; all for an empty one. */
  search(query: string): readonly Entry[] {
    const words = folded(query).split(/\s+/).filter(Boolean).slice(0, 16)
    if (words.length === 0) return this.#idle
    const whole = words.join(' ')
    const byScore: Entry[][] = [[], [], [], [], []]
    for (const { entry, name, text } of this.#lines)
      if (words.every(word => text.includes(word))) byScore[scoreOf(name, whole, words)]?.push(entry)
    return byScore.reverse().flat()
  }
}

/** Score of a match: an exact name, a prefix, all words in the name, some, or only in the description. */
function scoreOf(name: string, whole: string, words: readonly string[]): number {
  if (name === whole) return 4
  if (name.startsWith(whole)) return 3
  if (words.every(word => name.includes(word))) return 2
  return words.some(word => name.includes(word)) ? 1 : 0
}

const folded = (text: string) => text.normalize('NFKC').toLowerCase()
const popularity = ({ downloads = 0 }: Entry) => downloads
const byName = (a: Entry, b: Entry) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)
