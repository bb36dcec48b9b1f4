/** JSON with members sorted by code unit and no white space: equal values give equal text. Throws on cycles and bigints. */
export const canonicalJson = (value: unknown): string =>
  // Most values are sorted already, and a replacer costs more than the rest of the function.
  JSON.stringify(value, isSorted(value) ? undefined : sorted)

const sorted = (_: string, member: unknown) =>
  typeof member === 'object' && member !== null && !Array.isArray(member)
    ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
    : member

function isSorted(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (Array.isArray(value)) return value.every(isSorted)
  if ('toJSON' in value) return false
  const names = Object.keys(value)
  return names.every((name, i) => (i === 0 || (names[i - 1] as string) < name) && isSorted(value[name as never]))
}

/** The value of a text in JSON, or the text itself. */
export function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
