import { createHmac, hash } from 'node:crypto'
import { canonicalJson } from '../../../kernel/kit/canonical.js'
import { iso, type SqlValue } from '../../../kernel/plugin.js'
import type { AuditEntry } from '../../../schemas/daemon/audit.js'
import { namedActor } from '../../access/identity/api.js'

/** The columns of an entry; times in epoch milliseconds. Their order is part of the hash. */
export interface EntryRow {
  readonly seq: number
  readonly at: number
  readonly action: string
  readonly subject: string
  readonly version: number | null
  readonly actor_kind: string
  readonly actor_id: string
  readonly origin: string | null
  readonly cause: string | null
  readonly request: string | null
  readonly event: string | null
  readonly before: string | null
  readonly after: string | null
  readonly on_behalf_of: string | null
}

export const COLUMNS = [
  'seq',
  'at',
  'action',
  'subject',
  'version',
  'actor_kind',
  'actor_id',
  'origin',
  'cause',
  'request',
  'event',
  'before',
  'after',
  'on_behalf_of',
] as const satisfies readonly (keyof EntryRow)[]

/** An entry in its place in the chain. */
export type ChainedRow = EntryRow & { readonly hash: string }

/** The hash before the first entry. */
export const GENESIS = '0'.repeat(64)

/** Values of an entry in the order of the columns. */
export function valuesOf(seq: number, row: Omit<EntryRow, 'seq'>): SqlValue[] {
  const { at, action, subject, version, actor_kind, actor_id, origin, cause, request, event, before, after } = row
  return [
    seq,
    at,
    action,
    subject,
    version,
    actor_kind,
    actor_id,
    origin,
    cause,
    request,
    event,
    before,
    after,
    row.on_behalf_of,
  ]
}

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
export const actorOf = ({
  actor_kind: kind,
  actor_id: id,
  origin,
}: Pick<ChainedRow, 'actor_kind' | 'actor_id' | 'origin'>) => namedActor({ kind, id, origin })

export function entryToWire(row: ChainedRow): AuditEntry {
  const { seq, at, action, subject } = row
  const { kind, ref: id } = actorOf(row)
  const { version, origin, on_behalf_of, cause, request, event, before, after } = row
  const entries = Object.entries({ version, origin, on_behalf_of, cause, request, event, before, after })
  const optional = Object.fromEntries(entries.filter(([, value]) => value !== null)) as Partial<AuditEntry>
  return { seq, at: iso(at), action, subject, actor: { kind, id }, ...optional, hash: row.hash }
}
