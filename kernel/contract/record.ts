import type { Actor, Party } from './actor.js'
import type { Tx } from './db.js'
import type { Kind, RecordScope } from './kind.js'

/** A stored resource: the desired state of one thing. Times in epoch milliseconds. */
export interface StoredRecord<T = unknown> {
  readonly id: string
  readonly kind: string
  readonly scope: RecordScope
  readonly owner: Party
  readonly source: Party
  readonly spec: T
  readonly version: number
  readonly createdAt: number
  readonly updatedAt: number
}

/** The spec of records of a kind, as its codec decodes it; of a kind that is only named, whatever is stored. */
export type SpecOf<K> = K extends Kind<infer S> ? S : unknown

/** A record without its spec. `place`: where it is in the order in which the records were made, from 1, with gaps. */
export type RecordHead = Pick<StoredRecord, 'id' | 'kind' | 'scope' | 'owner' | 'source'> & { readonly place: number }

/** An owner or a source; without an id, all of that kind. */
export type PartyOf = { readonly of: 'owner' | 'source'; readonly kind: string; readonly id?: string }

/** One write of a record. */
export interface RecordWrite {
  readonly kind: string | Kind
  readonly id: string
  readonly scope: RecordScope
  readonly spec: unknown
  /** 0: must not exist; N: must be at N; absent: whatever is there. */
  readonly expectedVersion?: number | undefined
  /** Through the record routes: kinds that belong to a service refuse. */
  readonly direct?: boolean
  /** Who owns it; default the actor's owner. Actors of kind `daemon` only, others are refused (403). */
  readonly owner?: Party
  /** A snapshot or a reconciler's write: an equal canonical spec, scope and owner keeps version and times, marks nothing. */
  readonly quiet?: boolean
}

/** One delete of a record; `expectedVersion` is not 0. */
export type RecordDelete = Pick<RecordWrite, 'kind' | 'id' | 'expectedVersion' | 'direct'>

export interface RecordFilter {
  readonly kind?: string | Kind
  readonly scope?: { readonly kind: string; readonly id?: string }
  readonly owner?: Party
  readonly source?: Party
  /** Who reads: what this actor may not read is left out, before the limit counts. Absent: the daemon itself. */
  readonly as?: Actor
  /** Only those of one of these. */
  readonly anyOf?: readonly PartyOf[]
  /** None of those of one of these. */
  readonly noneOf?: readonly PartyOf[]
  /** Only those whose spec has these values in its members, as it is stored: looked for in each that the rest leaves. */
  readonly members?: Readonly<Record<string, string | number | boolean>>
  /** Only those whose place is in this range; `above` is not in it. */
  readonly places?: { readonly above: number; readonly upTo: number }
  /** Only what follows this key in the order of the list. */
  readonly after?: { readonly kind: string; readonly id: string }
  /** Absent or 0: all. */
  readonly limit?: number
}

/** A change that guards of other plugins may refuse. */
export type RecordChange =
  | { readonly verb: 'put'; readonly actor: Actor; readonly before?: StoredRecord; readonly after: StoredRecord }
  | { readonly verb: 'delete'; readonly actor: Actor; readonly before: StoredRecord }

/**
 * The record verbs; synchronous inside a transaction, so that several in one are done together or not at all. Every refusal
 * throws a fault: let it leave the transaction, and nothing is written.
 *
 * What is read by a {@link Kind} is decoded by its codec, which costs; read by the name of a kind, or by none, specs are as they
 * are stored, and may be of any shape. A record may have been stored before its codec was there, or by a later version.
 */
export interface Records {
  /**
   * Runs the checks in this order, then writes record and event: key (422), who may write the kind (403), version, scope
   * and codec (422, 413), grant for the scope (403), scope exists (422), presence (404, 409), source (403), version (409),
   * guards. Extension actors are refused with 403.
   */
  put<K extends string | Kind>(t: Tx, actor: Actor, write: RecordWrite & { readonly kind: K }): PutResult<SpecOf<K>>
  /** In the same order. */
  delete(t: Tx, actor: Actor, what: RecordDelete): void
  /**
   * Makes the records of an extension's source exactly those given: new ones are inserted, changed ones updated,
   * equal ones left alone, others removed. Refused with 403 for other actors and missing grants, 422 for a record named twice
   * or with a version, 413 beyond its limits, 409 when the actor's nonce is not the active one (`source_inactive`), when the
   * source version is not larger than the last one (`snapshot_stale`) and when an id belongs to another source.
   *
   * Only records that changed are reconciled: the loop is level-triggered, and another pass over an equal record would find
   * the runtime as it left it.
   */
  applySnapshot(t: Tx, actor: Actor, snapshot: Snapshot): SnapshotResult
  /** Lets one process speak for a source, and no other from now on; its source versions count from 1 again. */
  activateSource(t: Tx, source: Party, nonce: string): void
  /** Removes the records of a source, of kinds that the actor is granted, and lets nobody speak for it; guards may refuse. */
  resetSource(t: Tx, actor: Actor, source: Party): void
  /** With `as` only what that actor may read. By a {@link Kind}, throws `invalid_spec` (422) when its codec refuses the record. */
  get<K extends string | Kind>(kind: K, id: string, as?: Actor): StoredRecord<SpecOf<K>> | undefined
  /**
   * By kind, then id, both ascending. By a {@link Kind}, records that its codec refuses are left out, after the limit has
   * counted them: one must not spoil the list of all others, and the reconcile loop names it.
   */
  list<K extends string | Kind = string>(filter: RecordFilter & { readonly kind?: K }): StoredRecord<SpecOf<K>>[]
  /** A record that was read by its name, as the codec of its kind decodes it; as it is where none is registered. Throws `invalid_spec`. */
  decoded(record: StoredRecord): StoredRecord
  /** Those of the records that there are, in no order; by a {@link Kind}, without those that its codec refuses. */
  getAll<K extends string | Kind>(kind: K, ids: readonly string[]): StoredRecord<SpecOf<K>>[]
  /** The newest made first; goes on below the `place` of the last, as `places.upTo`. */
  page(filter: RecordFilter): RecordHead[]
  /** How many there are, whatever the limit. */
  count(filter: RecordFilter): number
  /** Ids of all records of a kind, ascending. */
  ids(kind: string | Kind): string[]
  /** What differs from a projection that knows these versions by id: ids of other versions, and of no record any more. */
  differing(kind: string | Kind, known: ReadonlyMap<string, number>): string[]
  /** Ids of sources of this kind that have records, ascending; never the operator's. */
  sources(kind: string): string[]
  /** What a route can refuse before it looks at a body: invalid names (422), then actors and kinds that write elsewhere (403). */
  checkWriter(actor: Actor, kind: string, id: string): void
  kinds(): { readonly name: string; readonly registered: boolean; readonly onDemand: boolean; readonly count: number }[]
}

export interface PutResult<T> {
  readonly record: StoredRecord<T>
  readonly created: boolean
  /** Id of the `record.put` event, for the cause of what follows; undefined when nothing changed. */
  readonly event?: string
}

/** The complete record set of a source, at one version of the source. */
export interface Snapshot {
  /** A whole number, larger than that of the last snapshot of this nonce. */
  readonly sourceVersion: number
  /** At most 256, specs of 256 KiB each and 2 MiB in all; `expectedVersion` absent or 0. */
  readonly records: readonly Omit<RecordWrite, 'direct' | 'owner' | 'quiet'>[]
}

/** How many records a snapshot made, changed, left as they were and removed. */
export type SnapshotResult = Readonly<Record<'created' | 'updated' | 'unchanged' | 'deleted', number>>
