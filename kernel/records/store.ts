import * as v from 'valibot'
import { type Actor, operator } from '../actor.js'
import type { Clock } from '../clock.js'
import { KernelErrors } from '../errors.js'
import { event } from '../events/index.js'
import type { EventLog } from '../events/log.js'
import { Guard, type Report } from '../hooks/index.js'
import type { Db, Migration, SqlValue, Tx } from '../store/index.js'
import { checkKey, checkScope, checkSource, checkVersion, encode, nameOf, same } from './checks.js'
import type {
  PutResult,
  RecordChange,
  RecordDelete,
  RecordFilter,
  Records,
  RecordWrite,
  StoredRecord,
} from './index.js'
import type { Kind, RecordScope } from './kind.js'

const changed = v.object({ kind: v.string(), id: v.string(), version: v.number(), created: v.optional(v.boolean()) })
export const RecordPut = event('record.put', changed)
export const RecordDeleted = event('record.deleted', changed)

type Row = {
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

// Most records are the operator's: an index of those finds nothing faster, and two pages more go into every write.
const NOT_OWNED_BY_OPERATOR = `owner_id <> '${operator.owner.id}'`
const NOT_FROM_OPERATOR = `source_id <> '${operator.source.id}'`

/** Records over the catalog. Every verb is synchronous inside the transaction that it is handed. */
export class RecordStore implements Records {
  static readonly migrations: readonly Migration[] = [
    {
      id: '001-record',
      sql: `CREATE TABLE kernel_record (
        kind TEXT NOT NULL, id TEXT NOT NULL, scope_kind TEXT NOT NULL, scope_id TEXT, owner_kind TEXT NOT NULL,
        owner_id TEXT NOT NULL, source_kind TEXT NOT NULL, source_id TEXT NOT NULL, spec TEXT NOT NULL,
        version INTEGER NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
      ) STRICT;
      CREATE UNIQUE INDEX kernel_record_key ON kernel_record (kind, id);
      CREATE INDEX kernel_record_scope ON kernel_record (scope_id) WHERE scope_id IS NOT NULL;
      CREATE INDEX kernel_record_owner ON kernel_record (owner_kind, owner_id) WHERE ${NOT_OWNED_BY_OPERATOR};
      CREATE INDEX kernel_record_source ON kernel_record (source_kind, source_id) WHERE ${NOT_FROM_OPERATOR};`,
    },
  ]

  readonly scopeGuard: Guard<[RecordScope]>
  readonly writeGuard: Guard<[RecordChange]>
  #kinds: ReadonlyMap<string, Kind> = new Map()

  constructor(
    private readonly db: Db,
    private readonly clock: Clock,
    private readonly events: EventLog,
    private readonly mark: (key: { kind: string; id: string }) => void,
    report: Report,
  ) {
    this.scopeGuard = new Guard('records.scope', report)
    this.writeGuard = new Guard('records.write', report)
  }

  /** Replaces the known kinds; records of others stay as they are. */
  setKinds(kinds: ReadonlyMap<string, Kind>): void {
    this.#kinds = kinds
  }

  kindOf(name: string): Kind | undefined {
    return this.#kinds.get(name)
  }

  checkWriter(kind: string, id: string): void {
    checkKey(kind, id)
    if (this.#kinds.get(kind)?.writers === 'owner') {
      throw KernelErrors.owner_only(
        `records of kind ${kind} are written by the service that owns them; they can be read here`,
      )
    }
  }

  put(t: Tx, actor: Actor, write: RecordWrite): PutResult<never> {
    const name = nameOf(write.kind)
    if (write.direct) this.checkWriter(name, write.id)
    else checkKey(name, write.id)
    const scope = checkScope(write.scope)
    const kind = this.#kinds.get(name)
    const spec = encode(kind, name, write, scope)
    this.scopeGuard.check(t, scope)
    const before = this.get(name, write.id) as StoredRecord | undefined
    checkVersion(name, write.id, before, write.expectedVersion, () => checkSource(actor, before))

    const owner = write.owner ?? actor.owner
    const now = this.clock.now()
    if (before && write.quiet && same(before, scope, owner, spec)) {
      return { record: before as StoredRecord<never>, created: false }
    }
    const after: StoredRecord = {
      id: write.id,
      kind: name,
      scope,
      owner,
      source: actor.source,
      spec: JSON.parse(spec),
      version: (before?.version ?? 0) + 1,
      createdAt: before?.createdAt ?? now,
      updatedAt: now,
    }
    this.writeGuard.check(t, { verb: 'put', actor, ...(before ? { before } : {}), after })
    this.db.within(t).run(
      `INSERT INTO kernel_record (kind, id, scope_kind, scope_id, owner_kind, owner_id, source_kind, source_id, spec,
         version, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (kind, id) DO UPDATE SET scope_kind = excluded.scope_kind, scope_id = excluded.scope_id,
         owner_kind = excluded.owner_kind, owner_id = excluded.owner_id, source_kind = excluded.source_kind,
         source_id = excluded.source_id, spec = excluded.spec, version = excluded.version, updated_at = excluded.updated_at`,
      [
        name,
        write.id,
        scope.kind,
        scope.id ?? null,
        owner.kind,
        owner.id,
        actor.source.kind,
        actor.source.id,
        spec,
        after.version,
        after.createdAt,
        now,
      ],
    )
    const { id: eventId } = this.#announce(t, RecordPut, actor, after, !before)
    return { record: after as StoredRecord<never>, created: !before, event: eventId }
  }

  delete(t: Tx, actor: Actor, what: RecordDelete): void {
    const name = nameOf(what.kind)
    if (what.direct) {
      this.checkWriter(name, what.id)
      if (what.expectedVersion === undefined || what.expectedVersion <= 0) {
        throw KernelErrors.invalid_version('a delete needs the current version, a positive number, as expected_version')
      }
    }
    const before = this.get(name, what.id) as StoredRecord | undefined
    if (!before) throw KernelErrors.record_not_found(`there is no ${name} record ${what.id}`)
    checkVersion(name, what.id, before, what.expectedVersion, () => checkSource(actor, before))
    this.writeGuard.check(t, { verb: 'delete', actor, before })
    this.db.within(t).run('DELETE FROM kernel_record WHERE kind = ? AND id = ?', [name, what.id])
    this.#announce(t, RecordDeleted, actor, before, false)
  }

  get(kind: string | Kind, id: string): StoredRecord<never> | undefined {
    const row = this.db.get<Row>('SELECT * FROM kernel_record WHERE kind = ? AND id = ?', [nameOf(kind), id])
    return row && (fromRow(row) as StoredRecord<never>)
  }

  list(filter: RecordFilter): StoredRecord<never>[] {
    const { where, params } = conditions(filter)
    const limit = filter.limit && filter.limit > 0 ? filter.limit : -1
    return this.db
      .all<Row>(`SELECT * FROM kernel_record ${where} ORDER BY kind, id LIMIT ?`, [...params, limit])
      .map(row => fromRow(row) as StoredRecord<never>)
  }

  /** A page of one kind in key order, for the boot of its reconciler. */
  page(kind: string, afterId: string, limit: number): StoredRecord[] {
    return this.db
      .all<Row>('SELECT * FROM kernel_record WHERE kind = ? AND id > ? ORDER BY id LIMIT ?', [kind, afterId, limit])
      .map(fromRow)
  }

  kinds(): { name: string; registered: boolean; count: number }[] {
    const counts = new Map(
      this.db
        .all<{ kind: string; n: number }>('SELECT kind, count(*) AS n FROM kernel_record GROUP BY kind')
        .map(row => [row.kind, row.n]),
    )
    const names = [...new Set([...this.#kinds.keys(), ...counts.keys()])].sort()
    return names.map(name => ({ name, registered: this.#kinds.has(name), count: counts.get(name) ?? 0 }))
  }

  #announce(t: Tx, type: typeof RecordPut, actor: Actor, record: StoredRecord, created: boolean) {
    const { kind, id, version } = record
    this.db.onDurable(t, () => this.mark({ kind, id }))
    return this.events.emit(
      t,
      type,
      { kind, id, version, ...(created ? { created } : {}) },
      { actor, scope: record.scope.id, subject: `${kind}/${id}` },
    )
  }
}

function conditions(filter: RecordFilter): { where: string; params: SqlValue[] } {
  const where: string[] = []
  const params: SqlValue[] = []
  const add = (sql: string, ...values: SqlValue[]) => {
    where.push(sql)
    params.push(...values)
  }
  if (filter.kind) add('kind = ?', nameOf(filter.kind))
  if (filter.scope?.kind === 'workspace') {
    add("scope_kind = 'workspace'")
    if (filter.scope.id !== undefined) add('scope_id = ?', filter.scope.id)
  } else if (filter.scope) add("scope_kind IN ('user', 'global')")
  if (filter.owner) {
    add('owner_kind = ? AND owner_id = ?', filter.owner.kind, filter.owner.id)
    if (filter.owner.id !== operator.owner.id) add(NOT_OWNED_BY_OPERATOR)
  }
  if (filter.source) {
    add('source_kind = ? AND source_id = ?', filter.source.kind, filter.source.id)
    if (filter.source.id !== operator.source.id) add(NOT_FROM_OPERATOR)
  }
  return { where: where.length > 0 ? `WHERE ${where.join(' AND ')}` : '', params }
}

function fromRow(row: Row): StoredRecord {
  return {
    id: row.id,
    kind: row.kind,
    scope: row.scope_id === null ? { kind: row.scope_kind } : { kind: row.scope_kind, id: row.scope_id },
    owner: { kind: row.owner_kind, id: row.owner_id },
    source: { kind: row.source_kind, id: row.source_id },
    spec: JSON.parse(row.spec),
    version: row.version,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}
