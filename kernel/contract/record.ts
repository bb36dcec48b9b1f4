import { iso } from './basics.js'
import type { Kind, RecordScope } from './kind.js'
import { isDropIn } from './plugin.js'
import type { Tx } from './storage.js'

/** A {kind, id} pair: the owner of a record, or its origin. */
export interface Party {
  readonly kind: string
  readonly id: string
}

/** The caller of an operation. `source` decides which records it may change; `owner` is stamped on those it writes. */
export interface Actor {
  /** An `extension` reads its own records within its grants, and writes only by publishing snapshots; the others read and write. */
  readonly kind: 'operator' | 'daemon' | 'extension'
  readonly id: string
  /** Owner of the records that the actor writes; records of an extension are always owned by its source. */
  readonly owner: Party
  readonly source: Party
  /** Identifies the process behind the source: only the newest process may publish. */
  readonly nonce?: string
  /** The largest scope; a workspace limits to records of exactly that one. Absent: no limit. */
  readonly maxScope?: RecordScope
  /** Granted kinds of records and of scopes; empty or absent means all for an operator or daemon and none for an extension. */
  readonly grantedKinds?: readonly string[]
  readonly grantedScopes?: readonly RecordScope['kind'][]
  /**
   * The actor's origin: `cli` or `uds` (Unix socket), `http`, `web` (a page of this daemon), `daemon` and `extension` (a plugin
   * of the program or a drop-in), or a name that an authenticator chose. Only information: no decision depends on it, but see
   * `confined`.
   */
  readonly origin?: string
  /** Only public routes, and routes with its origin in `origins`, serve it. */
  readonly confined?: true
  /** Id of the request or event that led here; events carry it as their `cause`. */
  readonly cause?: string
  /** The party on whose behalf the actor acts, once that is proven; events and the audit carry it. */
  readonly onBehalfOf?: Party
}

/** Whether a value has the form of an actor; for answers of code that is not type-checked. */
export function isActor(value: unknown): value is Actor {
  const { kind, id, owner, source } = Object(value) as Partial<Actor>
  const isParty = (party: Party | undefined) => typeof party?.kind === 'string' && typeof party.id === 'string'
  return (
    ['operator', 'daemon', 'extension'].includes(kind ?? '') &&
    typeof id === 'string' &&
    isParty(owner) &&
    isParty(source)
  )
}

/**
 * The owner of the daemon: the actor of the Unix socket, of `inject`, and of TCP requests that an authenticator accepts as the
 * owner's.
 */
export const operator: Actor = {
  kind: 'daemon',
  id: 'daemon-control',
  owner: { kind: 'daemon', id: 'daemon-control' },
  source: { kind: 'daemon', id: 'system' },
}

/** The operator as the caller of a request through one of the kernel's doors; injected requests without a caller have `uds`. */
export function operatorAt(origin: 'cli' | 'uds' | 'http' | 'web', cause: string): Actor {
  // Every member is listed, because a spread costs ten times as much, and each request pays for it.
  return { kind: operator.kind, id: operator.id, owner: operator.owner, source: operator.source, origin, cause }
}

/** A plugin acting on its own. */
export function pluginActor(name: string): Actor {
  const party = { kind: 'daemon', id: name }
  return { kind: 'daemon', id: name, owner: party, source: party, origin: isDropIn(name) ? 'extension' : 'daemon' }
}

/** The actor of a request to a public route whose caller is unknown; it reads and writes no record. */
export const anonymous: Actor = {
  kind: 'extension',
  id: 'anonymous',
  owner: { kind: 'extension', id: 'anonymous' },
  source: { kind: 'extension', id: 'anonymous' },
}

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

/** A record in wire format. */
export function recordToWire(record: StoredRecord) {
  const { createdAt, updatedAt, ...rest } = record
  return { ...rest, created_at: iso(createdAt), updated_at: iso(updatedAt) }
}
export type WireRecord = ReturnType<typeof recordToWire>

/** The decoded spec of a kind's records; unknown for a kind that is only named. */
export type SpecOf<K> = K extends Kind<infer S> ? S : unknown

/** A record without its spec. `place` is its position in order of creation, from 1, with gaps. */
export type RecordHead = Pick<StoredRecord, 'id' | 'kind' | 'scope' | 'owner' | 'source'> & { readonly place: number }

/** An owner or a source; without an id, all of that kind. */
export type PartyOf = { readonly of: 'owner' | 'source'; readonly kind: string; readonly id?: string }

/** One write of a record. */
export interface RecordWrite {
  readonly kind: string | Kind
  readonly id: string
  readonly scope: RecordScope
  readonly spec: unknown
  /** 0: must not exist; N: must be at version N; absent: any state. */
  readonly expectedVersion?: number | undefined
  /** Set for writes through the record routes, which kinds that belong to a service refuse. */
  readonly direct?: boolean
  /** The owner of the record; default the actor's owner. Only actors of kind `daemon` may set it, others are refused (403). */
  readonly owner?: Party
  /**
   * A write with an equal canonical spec, scope and owner changes nothing, not even version and times: for reconcilers and
   * snapshots.
   */
  readonly quiet?: boolean
  /** Part of an extension's snapshot: replaces any version, unless that comes from another source. */
  readonly published?: true
}

/** One delete of a record; `expectedVersion` is not 0. */
export type RecordDelete = Pick<RecordWrite, 'kind' | 'id' | 'expectedVersion' | 'direct'>

export interface RecordFilter {
  readonly kind?: string | Kind
  readonly id?: string
  readonly scope?: { readonly kind: string; readonly id?: string }
  readonly owner?: Party
  readonly source?: Party
  /** The reader: records that this actor may not read are left out, before the limit counts. Absent: the daemon itself. */
  readonly as?: Actor
  /** Only records of one of these parties. */
  readonly anyOf?: readonly PartyOf[]
  /** No records of these parties. */
  readonly noneOf?: readonly PartyOf[]
  /** Only records whose stored spec has these values in its members. No index helps: the spec of each remaining record is read. */
  readonly members?: Readonly<Record<string, string | number | boolean>>
  /**
   * Only records whose stored spec is like this pattern of SQL: `%` is any text, `_` any character, and ASCII letters match whatever
   * their case. The spec of each remaining record is read.
   */
  readonly like?: string
  /** Only records with a place in this range, without `above` itself. */
  readonly places?: { readonly above: number; readonly upTo: number }
  /** Only records after this key in the order of the list. */
  readonly after?: { readonly kind: string; readonly id: string }
  /** Absent or 0: all. */
  readonly limit?: number
}

/** A change that guards of other plugins may refuse. */
export type RecordChange =
  | { readonly verb: 'put'; readonly actor: Actor; readonly before?: StoredRecord; readonly after: StoredRecord }
  | { readonly verb: 'delete'; readonly actor: Actor; readonly before: StoredRecord }

/**
 * The record verbs. They are synchronous within a transaction, so that several form one atomic change. Every refusal throws a
 * fault: let it leave the transaction, and nothing is written.
 *
 * A read by a {@link Kind} decodes specs with its codec, which takes time. A read by the name of a kind, or without one, returns
 * specs as stored, in any shape: a record may have been stored before its codec existed, or by a later version.
 */
export interface Records {
  /**
   * Runs the checks in this order, then writes record and event: key (422), who may write the kind (403), version, scope
   * and codec (422, 413), grant for the scope (403), scope exists (422), presence (404, 409), source (403), version (409),
   * guards. Extension actors are refused with 403.
   */
  put<K extends string | Kind>(t: Tx, actor: Actor, write: RecordWrite & { readonly kind: K }): PutResult<SpecOf<K>>
  /** Runs the checks in the same order as {@link put}. */
  delete(t: Tx, actor: Actor, what: RecordDelete): void
  /** Canonical JSON of the spec that a write would store, after all checks that do not read the database. */
  ready(actor: Actor, write: RecordWrite): string
  /** Removes a record of any source and version; the caller has to check the actor. Guards may refuse. */
  erase(t: Tx, actor: Actor, record: StoredRecord): void
  /** With `as` only what that actor may read. By a {@link Kind}, throws `invalid_spec` (422) when its codec refuses the record. */
  get<K extends string | Kind>(kind: K, id: string, as?: Actor): StoredRecord<SpecOf<K>> | undefined
  /**
   * By kind, then id, both ascending. By a {@link Kind}, records that its codec refuses are left out after the limit has counted
   * them, so that one does not spoil the list; the reconcile loop reports it.
   */
  list<K extends string | Kind = string>(filter: RecordFilter & { readonly kind?: K }): StoredRecord<SpecOf<K>>[]
  /** Ids and versions, in the order of the list; they show whether data that was derived from records is current. */
  versions(filter: RecordFilter): readonly (readonly [id: string, version: number])[]
  /**
   * A record that was read by the name of its kind, decoded by the registered codec; unchanged without one. Throws `invalid_spec`.
   */
  decoded(record: StoredRecord): StoredRecord
  /** The existing records among these ids, in no order; by a {@link Kind}, without those that its codec refuses. */
  getAll<K extends string | Kind>(kind: K, ids: readonly string[]): StoredRecord<SpecOf<K>>[]
  /** Newest first. Pass the `place` of the last one as `places.upTo`, less one, for the next page. */
  page(filter: RecordFilter): RecordHead[]
  /** Number of records, regardless of the limit. */
  count(filter: RecordFilter): number
  /** Ids of all records of a kind, ascending. */
  ids(kind: string | Kind): string[]
  /** Ids of sources of this kind that have records, ascending; never the operator's. */
  sources(kind: string): string[]
  /** The refusals that do not depend on a body: invalid names (422), then actors and kinds that may not write by a route (403). */
  checkWriter(actor: Actor, kind: string, id: string): void
  kinds(): { readonly name: string; readonly registered: boolean; readonly onDemand: boolean; readonly count: number }[]
}

export interface PutResult<T> {
  readonly record: StoredRecord<T>
  readonly created: boolean
  /** Id of the `record.put` event, for the cause of later actions; undefined when nothing changed. */
  readonly event?: string
}
