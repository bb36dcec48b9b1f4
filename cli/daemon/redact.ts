import { redactText } from '../../plugins/platform/redaction/secret-patterns.js'

const secretName = /token|secret|passw(?:or)?d|credential|authorization|cookie|(?:api|private|access)[_-]?key/i
/** Names with a secret word that contain no secret: counts and digests. */
const harmlessName = /(?:_hash|_count|_total|_status|tokens)$/i
const redacted = '[redacted]'
const maxDepth = 8

/** The fields of a log line without values of secret names, and without secret-looking texts. */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value)
  if (typeof value !== 'object' || value === null) return value
  if (depth >= maxDepth) return '[too deep]'
  if (Array.isArray(value)) return value.map(item => redact(item, depth + 1))
  if (value instanceof Error) return redact({ message: value.message, stack: value.stack }, depth + 1)
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const secret = secretName.test(name) && !harmlessName.test(name) && typeof member !== 'number'
      return [name, secret ? redacted : redact(member, depth + 1)]
    }),
  )
}
