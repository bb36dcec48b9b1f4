import type * as v from 'valibot'

/** Maximum number of allowed values in a text. */
const named = 12

/**
 * The problem with a value, without the value: valibot's own text quotes the input, which may be a secret. A text by the author of
 * the schema is not changed.
 */
export function issueText({ type, expected, message, received, input }: v.BaseIssue<unknown>): string {
  if (type === 'strict_object' && expected === 'never') return 'unknown member'
  const quoted = /^["\d-]/.test(received) && message.endsWith(`eceived ${received}`)
  const text = quoted ? `${message.slice(0, -received.length)}another ${typeof input}` : message
  const values = expected?.split(' | ') ?? []
  if (values.length <= named) return text
  return text.replace(`${expected}`, () => `${values.slice(0, named).join(' | ')} | … ${values.length - named} more)`)
}
