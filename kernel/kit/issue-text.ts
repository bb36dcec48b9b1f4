import type * as v from 'valibot'

/** As many of the values that are allowed are named, and how many more there are. */
const named = 12

/**
 * What is wrong with a value, without the value: valibot's own text quotes what it got, which may be a secret. A text that
 * the author of the schema wrote stays as it is.
 */
export function issueText({ type, expected, message, received, input }: v.BaseIssue<unknown>): string {
  if (type === 'strict_object' && expected === 'never') return 'unknown member'
  const quoted = /^["\d-]/.test(received) && message.endsWith(`eceived ${received}`)
  const text = quoted ? `${message.slice(0, -received.length)}another ${typeof input}` : message
  const values = expected?.split(' | ') ?? []
  if (values.length <= named) return text
  return text.replace(`${expected}`, () => `${values.slice(0, named).join(' | ')} | … ${values.length - named} more)`)
}
