import type { Actor, Party } from '../actor.js'
import type { Fault } from '../errors.js'
import type { Hook } from '../hooks/index.js'
import type { Tx } from '../store/index.js'
import type { Kind, RecordScope } from './kind.js'

export { canonicalJson } from './canonical.js'
export { KIND_NAME, type Kind, kind, type RecordScope } from './kind.js'
export { RecordStore } from './store.js'
export { recordToWire } from './wire.js'

/** A stored resource (Specification A, "Desired-state resource record"); times in epoch milliseconds. */
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
  /** Who owns it; default the actor's owner. Daemon actors only. */
  readonly owner?: Party
  /** A snapshot or a reconciler's write: an equal canonical spec, scope and owner keeps version and times, marks nothing. */
  readonly quiet?: boolean
}

export interface RecordDelete {
  readonly kind: string | Kind
  readonly id: string
  readonly expectedVersion?: number | undefined
  readonly direct?: boolean
}

export interface RecordFilter {
  readonly kind?: string | Kind
  readonly scope?: { readonly kind: string; readonly id?: string }
  readonly owner?: Party
  readonly source?: Party
  /** Absent or 0: all. */
  readonly limit?: number
}

/** A change that guards of other plugins may refuse. */
export type RecordChange =
  | { readonly verb: 'put'; readonly actor: Actor; readonly before?: StoredRecord; readonly after: StoredRecord }
  | { readonly verb: 'delete'; readonly actor: Actor; readonly before: StoredRecord }

/** The record verbs; synchronous inside a transaction. Every refusal throws a fault and the transaction writes nothing. */
export interface Records {
  /** Checks in the order of the design (kind, writer, scope, codec, there, source, version, guards), then writes record and event. */
  put<T>(t: Tx, actor: Actor, write: RecordWrite & { readonly kind: Kind<T> }): PutResult<T>
  put(t: Tx, actor: Actor, write: RecordWrite): PutResult<unknown>
  delete(t: Tx, actor: Actor, what: RecordDelete): void
  get<T>(kind: Kind<T>, id: string): StoredRecord<T> | undefined
  get(kind: string, id: string): StoredRecord | undefined
  /** By kind, then id, both ascending. */
  list<T>(filter: RecordFilter & { readonly kind: Kind<T> }): StoredRecord<T>[]
  list(filter: RecordFilter): StoredRecord[]
  /** Refuses a direct write of a kind that belongs to a service, and invalid kind names, before a body is looked at. */
  checkWriter(kind: string, id: string): void
  /** Says whether a record scope of kind `workspace` may be used; the plugin that owns those taps it. */
  readonly scopeGuard: Hook<(t: Tx, scope: RecordScope) => Fault | undefined>
  readonly writeGuard: Hook<(t: Tx, change: RecordChange) => Fault | undefined>
  kinds(): { readonly name: string; readonly registered: boolean; readonly count: number }[]
}

export interface PutResult<T> {
  readonly record: StoredRecord<T>
  readonly created: boolean
  /** Id of the `record.put` event, for the cause of what follows; undefined when nothing changed. */
  readonly event?: string
}
