import { clip } from '../../../../kernel/kit/text.js'

/** Limits of one stored value: characters of a string, members of a list or an object, depth, and characters in all. */
const MAX_STRING = 128 * 1024
const MAX_MEMBERS = 1000
const MAX_DEPTH = 24
const MAX_TOTAL = 256 * 1024

/** A copy of a JSON value that is cut at these limits, with a note at each cut. */
export function boundValue(value: unknown): unknown {
  let left = MAX_TOTAL
  const visit = (item: unknown, depth: number): unknown => {
    if (typeof item === 'string') {
      const text = boundText(item, Math.min(MAX_STRING, Math.max(0, left)))
      left -= text.length
      return text
    }
    if (typeof item !== 'object' || item === null) return item
    left -= 2
    if (depth >= MAX_DEPTH || left <= 0) return Array.isArray(item) ? [] : {}
    if (Array.isArray(item)) return item.slice(0, MAX_MEMBERS).map(member => visit(member, depth + 1))
    const entries = Object.entries(item).slice(0, MAX_MEMBERS)
    return Object.fromEntries(
      entries.map(([name, member]) => {
        left -= name.length
        return [clip(name, 1024), visit(member, depth + 1)]
      }),
    )
  }
  return visit(value, 0)
}

/** At most `max` characters of a text, with a note at the cut. */
export function boundText(text: string, max: number): string {
  return text.length > max ? `${clip(text, max)}… (${text.length - max} characters left out)` : text
}
