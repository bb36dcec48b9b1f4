import type { Entry } from './feed.js'

interface Line {
  readonly entry: Entry
  readonly name: string
  /** Searchable text in lower case. */
  readonly text: string
}

/** A search index of one feed. */
export class SearchIndex {
  readonly #lines: readonly Line[]
  /** Entries for an empty query: curated ones first, then by downloads, then by name. */
  readonly #idle: readonly Entry[]

  constructor(entries: readonly Entry[]) {
    this.#lines = entries.map(entry => {
      const name = folded(`${entry.name} ${entry.display_name ?? ''}`).trim()
      const { description, author = '', tags, id } = entry
      return { entry, name, text: `${name} ${folded(`${id} ${tags.join(' ')} ${author} ${description}`)}` }
    })
    this.#idle = [...entries].sort(
      (a, b) => Number(b.curated) - Number(a.curated) || popularity(b) - popularity(a) || byName(a, b),
    )
  }

  /** Entries that contain every word of a query, best first; all for an empty one. */
  search(query: string): readonly Entry[] {
    const words = folded(query).split(/\s+/).filter(Boolean).slice(0, 16)
    const [first] = words
    if (first === undefined) return this.#idle
    const whole = words.join(' ')
    const found = this.#lines.filter(({ text }) => words.every(word => text.includes(word)))
    const scored = found.map(({ entry, name }) => ({ entry, score: scoreOf(name, whole, words) }))
    return scored
      .sort((a, b) => b.score - a.score || popularity(b.entry) - popularity(a.entry) || byName(a.entry, b.entry))
      .map(({ entry }) => entry)
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
