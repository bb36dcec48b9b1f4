import { iso } from './basics.js'
import type { Kind, RecordScope } from './kind.js'
import { isDropIn } from './plugin.js'
import type { Tx } from './storage.js'

/** A {kind, id} pair: who owns a record, or where it came from. */
export interface Party {
  readonly kind: string
  readonly id: string
}

/** The caller of an operation. `source` decides which records it may change; `owner` is stamped on those it writes. */
export interface Actor {
  /** An `extension` reads its own records within its grants and writes what it publishes only; the others read and write. */
  readonly kind: 'operator' | 'daemon' | 'extension'
  readonly id: string
  /** Owner of the records that the actor writes; records of an extension are always owned by its source. */
  readonly owner: Party
  readonly source: Party
  /** Of the process that speaks for the source: only the newest one publishes. */
  readonly nonce?: string
  /** The largest scope; a workspace limits to records of exactly that one. Absent: no limit. */
  readonly maxScope?: RecordScope
  /** Kinds and kinds of scope; empty or absent is everything for an operator or daemon and nothing for an extension. */
  readonly grantedKinds?: readonly string[]
  readonly grantedScopes?: readonly RecordScope['kind'][]
  /**
   * Where it acts from: `cli` or `uds` (Unix socket), `http`, `web` (a page of this daemon), `daemon` and `extension` (a plugin of the
   * program or one dropped in), or what an authenticator calls its own way. It tells, and decides nothing.
   */
  readonly origin?: string
  /** Served by public routes, and by those that name its origin in `origins`; every other one refuses it. */
  readonly confined?: true
  /** Id of the request or event that led here; travels into events as their `cause`. */
  readonly cause?: string
  /** The party on whose behalf the actor acts, once that is proven; events and the audit carry it. */
  readonly onBehalfOf?: Party
}

/** Whether a value has the form of an actor: for answers of code that no compiler has checked. */
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

/** The owner of the daemon: the actor of the Unix socket, of `inject`, and of TCP requests that an authenticator accepts as the owner's. */
export const operator: Actor = {
  kind: 'daemon',
  id: 'daemon-control',
  owner: { kind: 'daemon', id: 'daemon-control' },
  source: { kind: 'daemon', id: 'system' },
}

/** The operator as the caller of a request through one of the kernel's doors; injected requests without a caller have `uds`. */
export function operatorAt(origin: 'cli' | 'uds' | 'http' | 'web', cause: string): Actor {
  return { ...operator, origin, cause }
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

/** A record as it is sent. */
export function recordToWire(record: StoredRecord) {
  const { createdAt, updatedAt, ...rest } = record
  return { ...rest, created_at: iso(createdAt), updated_at: iso(updatedAt) }
}
export type WireRecord = ReturnType<typeof recordToWire>

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
  /** Of a snapshot of all that an extension has: whatever version is there, unless it comes from another source. */
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
  /** Canonical JSON of the spec that a write would store, once it has passed every check that needs no look at what is stored. */
  ready(actor: Actor, write: RecordWrite): string
  /** Removes a record whatever its source and version: whoever calls it has judged the actor. Guards may refuse. */
  erase(t: Tx, actor: Actor, record: StoredRecord): void
  /** With `as` only what that actor may read. By a {@link Kind}, throws `invalid_spec` (422) when its codec refuses the record. */
  get<K extends string | Kind>(kind: K, id: string, as?: Actor): StoredRecord<SpecOf<K>> | undefined
  /**
   * By kind, then id, both ascending. By a {@link Kind}, records that its codec refuses are left out, after the limit has
   * counted them: one must not spoil the list of all others, and the reconcile loop names it.
   */
  list<K extends string | Kind = string>(filter: RecordFilter & { readonly kind?: K }): StoredRecord<SpecOf<K>>[]
  /** Ids and versions, in the order of the list: what tells whether something made of a record still holds. */
  versions(filter: RecordFilter): readonly (readonly [id: string, version: number])[]
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
