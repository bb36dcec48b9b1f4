import type * as v from 'valibot'

/**
 * What is wrong with a value, without the value: valibot's own text quotes what it got, which may be a secret. A text that
 * the author of the schema wrote stays as it is.
 */
export function issueText({ type, expected, message, received, input }: v.BaseIssue<unknown>): string {
  if (type === 'strict_object' && expected === 'never') return 'unknown member'
  const quoted = /^["\d-]/.test(received) && message.endsWith(`eceived ${received}`)
  return quoted ? `${message.slice(0, -received.length)}another ${typeof input}` : message
}
