import type * as v from 'valibot'
import type { Awaitable } from './basics.js'
import type { StoredRecord } from './record.js'

/** A resource family: how its spec is decoded, validated and made canonical, and who may write it directly. */
export interface Kind<S = unknown> {
  /** `[a-z][a-z0-9_]*(\.[a-z0-9_]+)*`, at most 64 characters. */
  readonly name: string
  /** The codec: decodes leniently (unknown members are dropped) or strictly, as its schema says. */
  readonly spec: v.GenericSchema<unknown, S>
  /** Largest size of a spec, in bytes of its canonical JSON. */
  readonly maxBytes: number
  /** `owner`: a service keeps the lifecycle of these records, direct PUT and DELETE are refused with 403. */
  readonly writers?: 'anyone' | 'owner'
  /** The records are read on request, so that a missing reconciler is no fault. */
  readonly onDemand?: boolean
  /** What the schema alone cannot say: spec against id and scope. Returns what is wrong, or undefined. */
  check?(record: { readonly id: string; readonly scope: RecordScope; readonly spec: S }): string | undefined
}

/** Where a record applies. `user` and `global` mean the same; each is stored and returned as written. */
export interface RecordScope {
  readonly kind: 'user' | 'global' | 'workspace'
  readonly id?: string
}

/** What a name of a kind has to match. */
export const KIND_NAME = /^(?=.{1,64}$)[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$/

/** Declares a kind. */
export function kind<S>(definition: Kind<S>): Kind<S> {
  if (!KIND_NAME.test(definition.name)) throw new TypeError(`kind name ${JSON.stringify(definition.name)} is not valid`)
  return definition
}

/** What a pass is handed: the marked keys with their records as they are now, and the keys that are gone. Never a history. */
export interface Batch<T> {
  /** Set for the pages of the boot, which hand every record of the kind. */
  readonly first: boolean
  readonly records: readonly StoredRecord<T>[]
  readonly removed: readonly string[]
  /** Names a bad key; the others of the batch count as done. */
  fail(id: string, error: unknown): void
}

/**
 * A dependency: when a record of `kind` changes, the keys that `keys` names are marked, and what watches them in turn.
 * `keys` is asked with the record as it was and as it is, so that what hung on a removed or renamed one is found. Passes of
 * different kinds run side by side: what a pass needs of the other kind it reads from its records, not from its runtime.
 */
export type Watch<S> = { readonly kind: Kind; readonly keys: (self: S, record: StoredRecord) => readonly string[] }

/** Projects the records of one kind into the runtime; level-triggered, one pass at a time. */
export interface Reconciler<S, T> {
  readonly kind: Kind<T>
  /** Kinds that go first at boot. */
  readonly after?: readonly Kind[]
  /** Kinds that this one depends on; whoever closes a cycle of them fails. */
  readonly watches?: readonly Watch<S>[]
  /**
   * For a projection that is durable itself: the ids it holds, each with the version of the record it was made from. The boot
   * then hands over only records whose version differs, and ids without a record as removed. Absent: it hands over all.
   */
  readonly projected?: (self: S) => ReadonlyMap<string, number>
  readonly run: (self: S, batch: Batch<T>, signal: AbortSignal) => Awaitable<void>
}

/** Declares a watch. */
export function watch<S, T>(kind: Kind<T>, keys: (self: S, record: StoredRecord<T>) => readonly string[]): Watch<S> {
  return { kind: kind as Kind, keys: keys as Watch<S>['keys'] }
}
