import { createHash } from 'node:crypto'
import { canonicalJson } from '../../../kernel/kit/canonical.js'

/** SHA-256, hex, of the canonical JSON of a value. */
export const digestOf = (value: unknown): string =>
  createHash('sha256')
    .update(canonicalJson(value ?? null))
    .digest('hex')
