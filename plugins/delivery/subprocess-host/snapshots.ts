import {
  type Actor,
  defineErrors,
  type Inherited,
  KernelErrors,
  type Party,
  type PluginKernel,
  type RecordWrite,
  type Tx,
} from '../../../kernel/plugin.js'

const MAX_RECORDS = 256
const MAX_BYTES = 2 * 1024 * 1024

/** State of publishing sources: the active process of each, and its last version. */
export const sourceTable: Inherited = {
  stream: 'kernel',
  prefixes: ['kernel_source'],
  migrations: [
    {
      id: '002-source',
      // Homes store a digest of this text: not even whitespace may change.
      sql: `CREATE TABLE kernel_source (
      kind TEXT NOT NULL, id TEXT NOT NULL, nonce TEXT NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (kind, id)
    ) STRICT;`,
    },
  ],
}

export const SnapshotErrors = defineErrors({
  source_inactive: {
    status: 409,
    message: 'another process, or none, now publishes for this source; only the newest one may publish',
  },
  snapshot_stale: { status: 409, message: 'the source version has to be larger than the last published one' },
  invalid_snapshot: { status: 422, message: 'the snapshot is not valid' },
})

/** The complete record set of a source at one version. */
export interface Snapshot {
  /** An integer, larger than that of the last snapshot with this nonce. */
  readonly sourceVersion: number
  /** At most 256, specs of 256 KiB each and 2 MiB in all; `expectedVersion` absent or 0. */
  readonly records: readonly Omit<RecordWrite, 'direct' | 'owner' | 'quiet' | 'published'>[]
}

/** Counts of created, updated, unchanged and deleted records of a snapshot. */
export type SnapshotResult = Readonly<Record<'created' | 'updated' | 'unchanged' | 'deleted', number>>

/** Records that extensions publish, always as a complete set. Runs synchronously in the caller's transaction. */
export class Snapshots {
  constructor(private readonly kernel: Pick<PluginKernel, 'db' | 'records'>) {}

  /** Makes one process the only publisher of a source; its versions count from 1. */
  activate(t: Tx, { kind, id }: Party, nonce: string): void {
    // A new nonce restarts the count: its process does not know the last version, and the earlier process is fenced off.
    this.kernel.db.within(t).run(
      `INSERT INTO kernel_source (kind, id, nonce, version) VALUES (?, ?, ?, 0)
       ON CONFLICT (kind, id) DO UPDATE SET nonce = excluded.nonce, version = 0 WHERE nonce <> excluded.nonce`,
      [kind, id, nonce],
    )
  }

  /** Deletes the records of a source, of kinds granted to the actor, and deactivates its publisher; guards may refuse. */
  reset(t: Tx, actor: Actor, source: Party): void {
    const { db, records } = this.kernel
    db.within(t).run('DELETE FROM kernel_source WHERE kind = ? AND id = ?', [source.kind, source.id])
    for (const record of this.#granted(actor, source)) records.erase(t, actor, record)
  }

  /**
   * Makes the records of an extension's source exactly those given: new ones are inserted, changed ones updated,
   * equal ones left alone, others removed. Refused with 403 for other actors and missing grants, 422 for a record named twice
   * or with a version, 413 beyond its limits, 409 when the actor's nonce is not the active one (`source_inactive`), when the
   * source version is not larger than the last one (`snapshot_stale`) and when an id belongs to another source.
   *
   * Only changed records are reconciled: reconciliation is level-triggered, and another pass over an equal record would
   * find the runtime unchanged.
   */
  apply(t: Tx, actor: Actor, snapshot: Snapshot): SnapshotResult {
    const { records } = this.kernel
    if (actor.kind !== 'extension')
      throw KernelErrors.forbidden('only extensions publish snapshots; other callers put and delete single records')
    const keys = checkedKeys(snapshot)
    const writes = snapshot.records.map(record => ({ ...record, quiet: true, published: true }) as const)
    // All records are checked before any lookup.
    checkBytes(writes.map(write => records.ready(actor, write)))
    this.#advance(t, actor, snapshot.sourceVersion)
    const missing = this.#granted(actor, actor.source).filter(record => !keys.has(keyOf(record)))
    // Deletions come first: a new record may take the name of a deleted one.
    for (const record of missing) records.erase(t, actor, record)
    const count = { created: 0, updated: 0, unchanged: 0, deleted: missing.length }
    for (const write of writes) {
      const done = records.put(t, actor, write)
      count[done.created ? 'created' : done.event ? 'updated' : 'unchanged']++
    }
    return count
  }

  /** Throws `source_inactive` for a process that is not the active one, `snapshot_stale` for an old version. */
  #advance(t: Tx, { source: { kind, id }, nonce }: Actor, version: number): void {
    const { db } = this.kernel
    const state = db.get<{ nonce: string; version: number }>(
      'SELECT nonce, version FROM kernel_source WHERE kind = ? AND id = ?',
      [kind, id],
    )
    if (!state || state.nonce !== nonce) throw SnapshotErrors.source_inactive()
    if (version <= state.version)
      throw SnapshotErrors.snapshot_stale(
        `${kind}/${id} published version ${state.version}; the next snapshot needs a larger source version than that`,
      )
    db.within(t).run('UPDATE kernel_source SET version = ? WHERE kind = ? AND id = ?', [version, kind, id])
  }

  /** Records of a source whose kinds are granted to the actor. */
  #granted({ kind, grantedKinds = [] }: Actor, source: Party) {
    const covers = (wanted: string) =>
      grantedKinds.length === 0 ? kind !== 'extension' : grantedKinds.includes(wanted)
    return this.kernel.records.list({ source }).filter(record => covers(record.kind))
  }
}

/** Checks of a snapshot that need neither the catalog nor the codecs. Returns the keys of its records. */
function checkedKeys({ sourceVersion, records }: Snapshot): Set<string> {
  if (!Number.isSafeInteger(sourceVersion))
    throw SnapshotErrors.invalid_snapshot('the source version of a snapshot is a whole number')
  if (records.length > MAX_RECORDS)
    throw KernelErrors.payload_too_large(`a snapshot has at most ${MAX_RECORDS} records, this one ${records.length}`)
  const knownKeys = new Set<string>()
  for (const record of records) {
    const key = keyOf(record)
    if (record.expectedVersion) throw SnapshotErrors.invalid_snapshot(`${key}: in a snapshot expected_version is 0`)
    if (knownKeys.has(key)) throw SnapshotErrors.invalid_snapshot(`${key} is in the snapshot twice`)
    knownKeys.add(key)
  }
  return knownKeys
}

function checkBytes(specs: readonly string[]): void {
  const bytes = specs.reduce((sum, spec) => sum + Buffer.byteLength(spec), 0)
  if (bytes > MAX_BYTES)
    throw KernelErrors.payload_too_large(
      `the specs of the snapshot have ${bytes} bytes, at most ${MAX_BYTES} are allowed`,
    )
}

/** Kind names contain no slash. */
const keyOf = ({ kind, id }: Pick<RecordWrite, 'kind' | 'id'>) => `${typeof kind === 'string' ? kind : kind.name}/${id}`
