import type * as v from 'valibot'
import type { Awaitable } from './basics.js'
import type { StoredRecord } from './record.js'

/** A resource family: how its spec is decoded, validated and made canonical, and who may write it directly. */
export interface Kind<S = unknown> {
  /** `[a-z][a-z0-9_]*(\.[a-z0-9_]+)*`, at most 64 characters. */
  readonly name: string
  /** The codec. Its schema decides whether unknown members are dropped or refused. */
  readonly spec: v.GenericSchema<unknown, S>
  /** Largest size of a spec, in bytes of its canonical JSON. */
  readonly maxBytes: number
  /** `owner`: a service keeps the lifecycle of these records, direct PUT and DELETE are refused with 403. */
  readonly writers?: 'anyone' | 'owner'
  /** The records are read on request, so that a missing reconciler is not a fault. */
  readonly onDemand?: boolean
  /** Checks beyond the schema, which may involve id and scope. Returns the problem, or undefined. */
  check?(record: { readonly id: string; readonly scope: RecordScope; readonly spec: S }): string | undefined
}

/** Where a record applies. `user` and `global` mean the same; each is stored and returned as written. */
export interface RecordScope {
  readonly kind: 'user' | 'global' | 'workspace'
  readonly id?: string
}

/** The pattern of kind names. */
export const KIND_NAME = /^(?=.{1,64}$)[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$/

/** Declares a kind. */
export function kind<S>(definition: Kind<S>): Kind<S> {
  if (!KIND_NAME.test(definition.name)) throw new TypeError(`kind name ${JSON.stringify(definition.name)} is not valid`)
  return definition
}

/** Input of a pass: the current records of the marked keys, and the deleted keys. It is not a history of changes. */
export interface Batch<T> {
  /** Set for the pages of the boot, which contain every record of the kind. */
  readonly first: boolean
  readonly records: readonly StoredRecord<T>[]
  readonly removed: readonly string[]
  /** Reports a failed key; the others of the batch count as done. */
  fail(id: string, error: unknown): void
}

/**
 * A dependency: when a record of `kind` changes, the keys that `keys` returns are marked, and keys that watch them in turn. `keys`
 * is called with the old and the new record, so that dependents of a removed or renamed one are found. Passes of different kinds
 * run concurrently: a pass reads the other kind's records, not its runtime.
 */
export type Watch<S> = { readonly kind: Kind; readonly keys: (service: S, record: StoredRecord) => readonly string[] }

/** Projects the records of one kind into the runtime; level-triggered, one pass at a time. */
export interface Reconciler<S, T> {
  readonly kind: Kind<T>
  /** Kinds whose records are projected first at boot. */
  readonly after?: readonly Kind[]
  /** Kinds that this one depends on. A plugin that closes a cycle of them fails. */
  readonly watches?: readonly Watch<S>[]
  /**
   * For a durable projection: the ids in it, each with the version of the record that it was made from. The boot then passes only
   * records with another version, and ids without a record as removed. Absent: it passes all.
   */
  readonly projected?: (service: S) => ReadonlyMap<string, number>
  readonly run: (service: S, batch: Batch<T>, signal: AbortSignal) => Awaitable<void>
}

/** Declares a watch. */
export function watch<S, T>(kind: Kind<T>, keys: (service: S, record: StoredRecord<T>) => readonly string[]): Watch<S> {
  return { kind: kind as Kind, keys: keys as Watch<S>['keys'] }
}
