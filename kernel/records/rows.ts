import { Fault } from '../contract/errors.js'
import type { Kind, RecordScope } from '../contract/kind.js'
import {
  operator,
  type Party,
  type PartyOf,
  type RecordFilter,
  type RecordHead,
  type StoredRecord,
} from '../contract/record.js'
import type { SqlValue } from '../contract/storage.js'
import { jsonOrText } from '../kit/canonical.js'
import { alike, decodeSpec, nameOf } from './checks.js'
import { RecordErrors } from './errors.js'

/**
 * Columns of a {@link RecordHead}. They precede the spec in the table: to reach a column after a long spec, SQLite reads all of its
 * pages.
 */
export const HEAD = 'rowid AS place, kind, id, scope_kind, scope_id, owner_kind, owner_id, source_kind, source_id'

/** A row of the table of records. */
export interface Row {
  kind: string
  id: string
  scope_kind: RecordScope['kind']
  scope_id: string | null
  owner_kind: string
  owner_id: string
  source_kind: string
  source_id: string
  spec: string
  version: number
  created_at: number
  updated_at: number
}
export type HeadRow = Omit<Row, 'spec' | 'version' | 'created_at' | 'updated_at'> & { place: number }

// Most records are the operator's: an index on those would find nothing faster, and would add two pages to every write.
export const NOT_OWNED_BY_OPERATOR = `owner_id <> '${operator.owner.id}'`
export const NOT_FROM_OPERATOR = `source_id <> '${operator.source.id}'`

/** The table, and its indexes. Homes keep a digest of this text: not even a blank of it may change. */
export const TABLE = `CREATE TABLE kernel_record (
        kind TEXT NOT NULL, id TEXT NOT NULL, scope_kind TEXT NOT NULL, scope_id TEXT, owner_kind TEXT NOT NULL,
        owner_id TEXT NOT NULL, source_kind TEXT NOT NULL, source_id TEXT NOT NULL, spec TEXT NOT NULL,
        version INTEGER NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
      ) STRICT;
      CREATE UNIQUE INDEX kernel_record_key ON kernel_record (kind, id);
      CREATE INDEX kernel_record_scope ON kernel_record (scope_id) WHERE scope_id IS NOT NULL;
      CREATE INDEX kernel_record_owner ON kernel_record (owner_kind, owner_id) WHERE ${NOT_OWNED_BY_OPERATOR};
      CREATE INDEX kernel_record_source ON kernel_record (source_kind, source_id) WHERE ${NOT_FROM_OPERATOR};`

/**
 * The WHERE of a filter. It repeats the conditions of the partial indexes, which SQLite would not use otherwise. The next page of a
 * list follows the order of the key, a range of places that of the table: the sign before a column keeps SQLite from using its
 * index and sorting all rows found.
 */
export function conditions(filter: RecordFilter): { where: string; params: SqlValue[] } {
  const where: string[] = []
  const params: SqlValue[] = []
  const add = (sql: string, ...values: SqlValue[]) => {
    where.push(sql)
    params.push(...values)
  }
  const { after, places } = filter
  const by = after || places ? '+' : ''
  if (places) add('rowid > ? AND rowid <= ?', places.above, places.upTo)
  if (filter.kind) add(`${places ? '+' : ''}kind = ?`, nameOf(filter.kind))
  if (filter.id !== undefined) add(`${places ? '+' : ''}id = ?`, filter.id)
  if (after && filter.kind) add('id > ?', after.id)
  else if (after) add('(kind, id) > (?, ?)', after.kind, after.id)
  if (filter.scope?.kind === 'workspace') {
    add("scope_kind = 'workspace'")
    if (filter.scope.id !== undefined) add(`${by}scope_id = ?`, filter.scope.id)
  } else if (filter.scope) add("scope_kind IN ('user', 'global')")
  if (filter.owner) {
    add(`${by}owner_kind = ? AND ${by}owner_id = ?`, filter.owner.kind, filter.owner.id)
    if (filter.owner.id !== operator.owner.id) add(NOT_OWNED_BY_OPERATOR)
  }
  const from = ({ kind, id }: Party, sign: string) => {
    add(`${sign}source_kind = ? AND ${sign}source_id = ?`, kind, id)
    if (id !== operator.source.id) add(NOT_FROM_OPERATOR)
  }
  if (filter.source) from(filter.source, by)
  if (filter.as) {
    const { kind, source, grantedKinds = [], grantedScopes = [], maxScope } = filter.as
    const within = (column: string, grants: readonly string[]) => {
      if (kind === 'extension' || grants.length > 0)
        add(`${column} IN (SELECT value FROM json_each(?))`, JSON.stringify(grants))
    }
    // The records of one extension are fewer than the records between them in the order of the key.
    if (kind === 'extension') from(source, '')
    within('kind', grantedKinds)
    within("replace(scope_kind, 'user', 'global')", grantedScopes.map(alike))
    if (maxScope?.kind === 'workspace') add("scope_kind = 'workspace' AND scope_id IS ?", maxScope.id ?? null)
  }
  const oneOf = (not: string, parties: readonly PartyOf[] = []) => {
    const each = parties.map(({ of, id }) => `${of}_kind = ?${id === undefined ? '' : ` AND ${of}_id = ?`}`)
    const values = parties.flatMap(({ kind, id }) => (id === undefined ? [kind] : [kind, id]))
    if (parties.length > 0) add(`${not}(${each.join(' OR ')})`, ...values)
  }
  oneOf('', filter.anyOf)
  oneOf('NOT ', filter.noneOf)
  // Last, because they read the spec. A bare parameter after LIKE would make SQLite plan anew each time, too.
  if (filter.like) add('spec LIKE +?', filter.like)
  // A spec may be invalid JSON, from a file that was edited by hand.
  for (const [name, value] of Object.entries(filter.members ?? {}))
    add('json_valid(spec) AND spec -> ? = ?', `$.${JSON.stringify(name)}`, JSON.stringify(value))
  return { where: where.length > 0 ? `WHERE ${where.join(' AND ')}` : '', params }
}

const partsOf = (row: Omit<HeadRow, 'place'>) => ({
  id: row.id,
  kind: row.kind,
  scope: row.scope_id === null ? { kind: row.scope_kind } : { kind: row.scope_kind, id: row.scope_id },
  owner: { kind: row.owner_kind, id: row.owner_id },
  source: { kind: row.source_kind, id: row.source_id },
})

export const headFromRow = (row: HeadRow): RecordHead => ({ ...partsOf(row), place: row.place })

export function fromRow(row: Row): StoredRecord {
  // No spread of the parts: a list would take twice as long.
  const { id, kind, scope, owner, source } = partsOf(row)
  const { version, created_at: createdAt, updated_at: updatedAt } = row
  // A spec that is invalid JSON, from a file that was edited by hand, stays text: its codec refuses it, and lists do not fail.
  return { id, kind, scope, owner, source, spec: jsonOrText(row.spec), version, createdAt, updatedAt }
}

/**
 * A record as its reader gets it: decoded by the codec of the kind, or as stored when only a name is given. It is the reader's
 * codec, which has the reader's types, not the registered one.
 * @throws Fault `invalid_spec` when the codec refuses it
 */
export function read(kind: string | Kind | undefined, record: StoredRecord): StoredRecord<never> {
  if (typeof kind !== 'object') return record as StoredRecord<never>
  try {
    return { ...record, spec: decodeSpec(kind, record) as never }
  } catch (cause) {
    if (!(cause instanceof Fault)) throw cause
    const { id, version } = record
    const text = `the stored record ${kind.name} ${id}, version ${version}, is not valid: ${cause.message}; write it again or delete it`
    throw RecordErrors.invalid_spec(text, {
      details: cause.details,
      next: `svc resource get ${kind.name} ${id}`,
      cause,
    })
  }
}

/** Records decoded by a kind, without those that its codec refuses. */
export function readAll(kind: string | Kind | undefined, rows: readonly Row[]): StoredRecord<never>[] {
  const records: StoredRecord<never>[] = []
  for (const row of rows) {
    try {
      records.push(read(kind, fromRow(row)))
    } catch {
      // An invalid record must not hide the others. The reconcile loop reports it.
    }
  }
  return records
}
