import * as v from 'valibot'

/** Maximum number of allowed values in a text. */
const NAMED = 12
const COMPARISONS: Readonly<Record<string, string>> = {
  '>=': 'at least ',
  '<=': 'at most ',
  '>': 'more than ',
  '<': 'less than ',
}
const TYPES: Readonly<Record<string, string>> = {
  Array: 'a list',
  Object: 'an object',
  Function: 'a function',
  string: 'a string',
  number: 'a number',
  boolean: 'true or false',
}

/**
 * The problem with a value, without the value, which may be a secret and which valibot's own text quotes. A text by the author of
 * the schema is not changed.
 */
export function issueText({ type, expected, message, received, input }: v.BaseIssue<unknown>): string {
  if (type === 'strict_object' && expected === 'never') return 'unknown member'
  const [, label] = /^Invalid ([\w ]+): (?:Expected .+ r|R)eceived /s.exec(message) ?? []
  if (label === undefined || !message.endsWith(`eceived ${received}`)) return message
  if (label === 'key') return 'is required'
  if (!expected) return label === 'input' ? 'is not valid' : `is not a valid ${label}`
  if (type === 'non_empty' || (label === 'length' && expected === '>=1')) return 'must not be empty'
  if (label === 'type') return `must be ${oneOf(expected)}, not ${typeOf(input, /["\d]/.test(expected))}`
  const bound = expected.replace(/^[<>]=?/, comparison => COMPARISONS[comparison] ?? comparison)
  if (bound === expected) return `must have the ${label} ${expected}`
  if (label === 'length' || label === 'bytes') return `must have ${bound} ${unitOf(label, input)}`
  return `must be ${bound}`
}

/** The text of an issue after its path, or after `whole` for the checked value itself. */
export const issueLine = (issue: v.BaseIssue<unknown>, whole = 'the whole'): string =>
  `${v.getDotPath(issue) ?? whole}: ${issueText(issue)}`

/** Allowed types or values as words: `("a" | "b")` is `a or b`. */
function oneOf(expected: string): string {
  const values = expected.replace(/^\((.+)\)$/s, '$1').split(' | ')
  const words = values.slice(0, NAMED).map(value => TYPES[value] ?? value.replace(/^"([\w.*-]+)"$/, '$1'))
  const last = values.length > NAMED ? `one of ${values.length - NAMED} more` : words.pop()
  return [words.join(', '), last].filter(Boolean).join(' or ')
}

function unitOf(label: string, input: unknown): string {
  if (label === 'bytes') return 'bytes'
  return typeof input === 'string' ? 'characters' : 'entries'
}

/** The type of a value; where values are allowed, a string is another string. */
function typeOf(input: unknown, hasValues: boolean): string {
  if (input === null || input === undefined) return String(input)
  const type = typeof input === 'object' ? (Array.isArray(input) ? 'Array' : 'Object') : typeof input
  if (hasValues && (type === 'string' || type === 'number')) return `another ${type}`
  return type === 'boolean' ? 'a boolean' : (TYPES[type] ?? 'another value')
}
