import { createHash } from 'node:crypto'
import { canonicalJson } from '../../../kernel/kit/canonical.js'

/** SHA-256, hex, of the canonical JSON of a value. */
export const digestOf = (value: unknown): string =>
  createHash('sha256')
    .update(canonicalJson(value ?? null))
    .digest('hex')

/** Digests of schemas, which never change. */
const digests = new WeakMap<object, string>()

/** {@link digestOf} a schema of a tool: lists ask for those of all tools each time. */
export function digestOfSchema(schema: object): string {
  const digest = digests.get(schema) ?? digestOf(schema)
  digests.set(schema, digest)
  return digest
}
