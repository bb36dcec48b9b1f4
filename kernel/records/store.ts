import type { Clock, Scope } from '../contract/basics.js'
import { Collected } from '../contract/bound.js'
import { KernelErrors } from '../contract/errors.js'
import type { Written } from '../contract/kernel-hooks.js'
import type { Kind } from '../contract/kind.js'
import type {
  Actor,
  PutResult,
  RecordChange,
  RecordDelete,
  RecordFilter,
  RecordHead,
  Records,
  RecordWrite,
  StoredRecord,
} from '../contract/record.js'
import type { Db, Migration, Tx } from '../contract/storage.js'
import { collected, type KernelHooks, kernelTapper } from '../hooks/kernel-hooks.js'
import {
  checkExpected,
  checkTaken,
  checkVersion,
  checkWriter,
  decodeSpec,
  nameOf,
  type ReadyWrite,
  reads,
  readyWrite,
  same,
  wayOf,
} from './checks.js'
import {
  conditions,
  fromRow,
  HEAD,
  type HeadRow,
  headFromRow,
  NOT_FROM_OPERATOR,
  type Row,
  read,
  readAll,
  TABLE,
} from './rows.js'

/** Records in the database. Every verb is synchronous within the transaction that it receives. */
export class RecordStore implements Records {
  static readonly migrations: readonly Migration[] = [{ id: '001-record', sql: TABLE }]

  #kinds: ReadonlyMap<string, Kind> = new Map()

  constructor(
    private readonly db: Db,
    private readonly clock: Clock,
    private readonly hooks: KernelHooks,
    scope: Scope,
  ) {
    // Records of kinds that are no longer known stay as they are.
    hooks.known.tap(kernelTapper(scope), () => {
      this.#kinds = new Map(collected(hooks, Collected.kinds).map(({ entry }) => [entry.name, entry]))
    })
  }

  checkWriter(actor: Actor, kind: string, id: string): void {
    checkWriter(this.#kinds, actor, kind, id, 'route')
  }

  put(t: Tx, actor: Actor, write: RecordWrite): PutResult<never> {
    const ready = readyWrite(this.#kinds, actor, write)
    this.hooks.scope.check(t, ready.scope)
    const before = this.#find(ready.kind, ready.id)
    if (write.published) checkTaken(actor, before)
    else checkVersion(actor, ready.kind, ready.id, before, write.expectedVersion)
    return this.#write(t, actor, before, ready, write.quiet)
  }

  delete(t: Tx, actor: Actor, what: RecordDelete): void {
    const name = nameOf(what.kind)
    checkWriter(this.#kinds, actor, name, what.id, wayOf(what))
    checkExpected(what.expectedVersion)
    if (what.expectedVersion === 0 || (what.direct && what.expectedVersion === undefined)) {
      throw KernelErrors.invalid_version('a delete requires the current version (positive) as expected_version')
    }
    const before = this.#find(name, what.id)
    if (!before) throw KernelErrors.record_not_found(`there is no ${name} record ${what.id}`)
    checkVersion(actor, name, what.id, before, what.expectedVersion)
    this.erase(t, actor, before)
  }

  ready(actor: Actor, write: RecordWrite): string {
    return readyWrite(this.#kinds, actor, write).spec
  }

  get(kind: string | Kind, id: string, as?: Actor): StoredRecord<never> | undefined {
    const record = this.#find(nameOf(kind), id)
    return record && (!as || reads(as, record)) ? read(kind, record) : undefined
  }

  list(filter: RecordFilter): StoredRecord<never>[] {
    return readAll(filter.kind, this.db.all<Row>(...selecting('*', filter)))
  }

  getAll(kind: string | Kind, ids: readonly string[]): StoredRecord<never>[] {
    const sql = 'SELECT * FROM kernel_record WHERE kind = ? AND id IN (SELECT value FROM json_each(?))'
    return readAll(kind, this.db.all<Row>(sql, [nameOf(kind), JSON.stringify(ids)]))
  }

  versions(filter: RecordFilter) {
    return this.db.rows(...selecting('id, version', filter)) as [id: string, version: number][]
  }

  page(filter: RecordFilter): RecordHead[] {
    return this.db.all<HeadRow>(...selecting(HEAD, filter, 'rowid DESC')).map(headFromRow)
  }

  count(filter: RecordFilter): number {
    const { where, params } = conditions(filter)
    return Number(this.db.row(`SELECT count(*) FROM kernel_record ${where}`, params)?.[0])
  }

  /** The ids are read as one text, because 100,000 rows would take three times as long. */
  ids(kind: string | Kind): string[] {
    const sql = 'SELECT json_group_array(id) FROM (SELECT id FROM kernel_record WHERE kind = ? ORDER BY id)'
    return JSON.parse(String(this.db.row(sql, [nameOf(kind)])?.[0]))
  }

  sources(kind: string): string[] {
    // With the condition of the partial index; otherwise all records of the home would be read.
    const sql = `SELECT DISTINCT source_id FROM kernel_record WHERE source_kind = ? AND ${NOT_FROM_OPERATOR} ORDER BY source_id`
    return this.db.rows(sql, [kind]).map(([id]) => String(id))
  }

  decoded(record: StoredRecord): StoredRecord {
    const codec = this.#kinds.get(record.kind)
    return codec ? { ...record, spec: decodeSpec(codec, record) } : record
  }

  kinds(): { name: string; registered: boolean; onDemand: boolean; count: number }[] {
    const counts = new Map(this.db.rows('SELECT kind, count(*) FROM kernel_record GROUP BY kind') as [string, number][])
    const names = [...new Set([...this.#kinds.keys(), ...counts.keys()])].sort()
    return names.map(name => {
      const kind = this.#kinds.get(name)
      return { name, registered: kind !== undefined, onDemand: kind?.onDemand === true, count: counts.get(name) ?? 0 }
    })
  }

  #find(kind: string, id: string): StoredRecord | undefined {
    const row = this.db.get<Row>('SELECT * FROM kernel_record WHERE kind = ? AND id = ?', [kind, id])
    return row && fromRow(row)
  }

  #write(
    t: Tx,
    actor: Actor,
    before: StoredRecord | undefined,
    { kind, id, scope, owner, spec }: ReadyWrite,
    quiet = false,
  ): PutResult<never> {
    if (before && quiet && same(before, scope, owner, spec)) {
      return { record: before as StoredRecord<never>, created: false }
    }
    const now = this.clock.now()
    const after: StoredRecord = {
      id,
      kind,
      scope,
      owner,
      source: actor.source,
      spec: JSON.parse(spec),
      version: (before?.version ?? 0) + 1,
      createdAt: before?.createdAt ?? now,
      updatedAt: now,
    }
    const change: RecordChange = { verb: 'put', actor, ...(before ? { before } : {}), after }
    this.hooks.write.check(t, change)
    const { source } = actor
    const parties = [scope.kind, scope.id ?? null, owner.kind, owner.id, source.kind, source.id]
    this.db.within(t).run(
      `INSERT INTO kernel_record (kind, id, scope_kind, scope_id, owner_kind, owner_id, source_kind, source_id, spec,
         version, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (kind, id) DO UPDATE SET scope_kind = excluded.scope_kind, scope_id = excluded.scope_id,
         owner_kind = excluded.owner_kind, owner_id = excluded.owner_id, source_kind = excluded.source_kind,
         source_id = excluded.source_id, spec = excluded.spec, version = excluded.version, updated_at = excluded.updated_at`,
      [kind, id, ...parties, spec, after.version, after.createdAt, now],
    )
    const written: Written = { change }
    this.hooks.written.call(t, written)
    return {
      record: after as StoredRecord<never>,
      created: !before,
      ...(written.event ? { event: written.event } : {}),
    }
  }

  erase(t: Tx, actor: Actor, before: StoredRecord): void {
    const change: RecordChange = { verb: 'delete', actor, before }
    this.hooks.write.check(t, change)
    this.db.within(t).run('DELETE FROM kernel_record WHERE kind = ? AND id = ?', [before.kind, before.id])
    this.hooks.written.call(t, { change })
  }
}

function selecting(columns: string, filter: RecordFilter, order = 'kind, id') {
  const { where, params } = conditions(filter)
  const sql = `SELECT ${columns} FROM kernel_record ${where} ORDER BY ${order} LIMIT +?`
  return [sql, [...params, filter.limit || -1]] as const
}
