/**
 * JSON by RFC 8785: members sorted by UTF-16 code units, no white space, numbers in ECMAScript form. Throws a TypeError
 * for values that RFC 8785 cannot represent: lone surrogates, non-finite numbers, and values that are not JSON.
 *
 * The kit's `canonicalJson` is for comparing values within one process. It rebuilds objects, and JavaScript always puts
 * integer names first, in numeric order. A signature that others verify needs the standard order.
 */
export function canonicalize(value: unknown): string {
  if (value === null || typeof value === 'boolean') return `${value}`
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new TypeError('JSON numbers must be finite')
    return JSON.stringify(value)
  }
  if (typeof value === 'string') return quoted(value)
  if (Array.isArray(value)) return `[${value.map(canonicalize).join(',')}]`
  if (typeof value !== 'object') throw new TypeError(`JSON cannot represent a ${typeof value}`)
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  members.sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${quoted(name)}:${canonicalize(member)}`).join(',')}}`
}

const LONE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/

function quoted(text: string): string {
  if (LONE.test(text)) throw new TypeError('a text contains an unpaired surrogate')
  return JSON.stringify(text)
}
