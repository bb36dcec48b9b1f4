/** Escapes of halves of characters, the only way for them into a text that was decoded from UTF-8. */
const HALVES = /\\u[dD][89a-fA-F]/

/** JSON of somebody else, {@link wellFormed}. @throws SyntaxError */
export const parseJson = (text: string): unknown => wellFormedOf(text, JSON.parse(text))

/** A value that was parsed from this JSON, {@link wellFormed}. Looks into it only where the JSON has such an escape. */
export const wellFormedOf = <T>(json: string, value: T): T => (HALVES.test(json) ? wellFormed(value) : value)

/**
 * The value with U+FFFD in the place of each half of a character, in texts and in names of members. UTF-8 has no such halves: other
 * programs refuse the JSON that repeats them, and SQLite stores something else.
 */
export function wellFormed<T>(value: T): T {
  if (typeof value === 'string') return value.toWellFormed() as T
  if (Array.isArray(value)) return value.map(wellFormed) as T
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name.toWellFormed(), wellFormed(member)]),
  ) as T
}
