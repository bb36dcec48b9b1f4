/**
 * JSON by RFC 8785: members sorted by UTF-16 code units, no white space, numbers as ECMAScript writes them. What RFC 8785 has no text for
 * (lone surrogates, numbers that are not finite, values that are no JSON) throws a TypeError.
 *
 * The kit's `canonicalJson` serves to compare values of one process. It rebuilds objects, and JavaScript puts names that are integers
 * first and in numeric order, whatever order they were set in; a signature that others verify needs the order of the standard.
 */
export function canonicalize(value: unknown): string {
  if (value === null || typeof value === 'boolean') return `${value}`
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new TypeError('JSON has no number that is not finite')
    return JSON.stringify(value)
  }
  if (typeof value === 'string') return quoted(value)
  if (Array.isArray(value)) return `[${value.map(canonicalize).join(',')}]`
  if (typeof value !== 'object') throw new TypeError(`JSON has no ${typeof value}`)
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  members.sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${quoted(name)}:${canonicalize(member)}`).join(',')}}`
}

const LONE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/

function quoted(text: string): string {
  if (LONE.test(text)) throw new TypeError('a text has half of a surrogate pair')
  return JSON.stringify(text)
}
