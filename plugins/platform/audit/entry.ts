import { createHmac, hash } from 'node:crypto'
import { canonicalJson } from '../../../kernel/kit/canonical.js'
import { column, type RowOf, table } from '../../../kernel/kit/table.js'
import { iso, type SqlValue } from '../../../kernel/plugin.js'
import type { AuditEntry } from '../../../schemas/daemon/audit.js'
import { namedActor } from '../../access/identity/api.js'

const { integer, text } = column

/** The columns that the hash of an entry covers, in this order. */
const HASHED = {
  seq: integer().generated(),
  at: integer(),
  action: text(),
  subject: text(),
  version: integer().optional(),
  actor_kind: text(),
  actor_id: text(),
  origin: text().optional(),
  cause: text().optional(),
  request: text().optional(),
  event: text().optional(),
  before: text().optional(),
  after: text().optional(),
  on_behalf_of: text().optional(),
}

export const COLUMNS = Object.keys(HASHED) as (keyof typeof HASHED)[]
export const entries = table('audit_entry', { ...HASHED, hash: text() })

/** An entry in its place in the chain. */
export type ChainedRow = RowOf<typeof entries>
/** An entry without its position. */
export type NewEntry = Omit<ChainedRow, 'seq' | 'hash'>

/** The hash before the first entry. */
export const GENESIS = '0'.repeat(64)

/** Values of an entry in the order of the columns. */
export const valuesOf = (seq: number, row: NewEntry): SqlValue[] =>
  COLUMNS.map(name => (name === 'seq' ? seq : (row[name] ?? null)))

/**
 * Hash of an entry that follows one with the hash `before`. A list of columns in a fixed order is canonical JSON. The last column
 * is only hashed if it is not null, so that entries from before it existed keep their hash.
 */
export function hashOf(before: string, values: readonly SqlValue[]): string {
  const content = values.at(-1) === null ? values.slice(0, -1) : values
  return hash('sha256', `${before}\n${JSON.stringify(content)}`)
}

/**
 * Digest of a value under the key of the home. A plain hash of a short text, such as a password, could be found by trying values;
 * that requires the key here.
 */
export function digestOf(key: string, value: unknown): string {
  return `hmac:${createHmac('sha256', key).update(canonicalJson(value)).digest('hex')}`
}

/** The actor of an entry by its name for people: `human/operator` for the owner. */
export const actorOf = ({ actor_kind: kind, actor_id: id, origin }: ChainedRow) => namedActor({ kind, id, origin })

export function entryToWire(row: ChainedRow): AuditEntry {
  const { actor_kind: _kind, actor_id: _id, ...rest } = row
  const { kind, ref: id } = actorOf(row)
  return { ...rest, at: iso(row.at), actor: { kind, id } }
}
