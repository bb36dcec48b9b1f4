import type { Awaitable } from '../awaitable.js'
import type { StoredRecord } from '../records/index.js'
import type { Kind } from '../records/kind.js'

/** What a pass is handed: the marked keys with their records as they are now, and the keys that are gone. Never a history. */
export interface Batch<T> {
  /** Set for the pages of the boot, which hand every record of the kind. */
  readonly first: boolean
  readonly records: readonly StoredRecord<T>[]
  readonly removed: readonly string[]
  /** Names a bad key; the others of the batch count as done. */
  fail(id: string, error: unknown): void
}

/** A dependency: when a record of `kind` changes, the keys that `keys` names are marked. */
export interface Watch<S> {
  readonly kind: Kind
  readonly keys: (self: S, record: StoredRecord) => readonly string[]
}

/** Projects the records of one kind into the runtime; level-triggered, one pass at a time. */
export interface Reconciler<S, T> {
  readonly kind: Kind<T>
  /** Kinds that go first at boot. */
  readonly after?: readonly Kind[]
  readonly watches?: readonly Watch<S>[]
  readonly run: (self: S, batch: Batch<T>, signal: AbortSignal) => Awaitable<void>
}

/** Declares a watch. */
export function watch<S, T>(kind: Kind<T>, keys: (self: S, record: StoredRecord<T>) => readonly string[]): Watch<S> {
  return { kind: kind as Kind, keys: keys as Watch<S>['keys'] }
}

export interface QuarantinedRecord {
  readonly kind: string
  readonly id: string
  readonly error: string
  readonly attempts: number
  /** Epoch milliseconds of the next try. */
  readonly retryAt: number
}

/** Health of a kind (Behaviour 2.7 and the design's `stuck`). */
export interface KindHealth {
  readonly kind: string
  readonly status: 'healthy' | 'failing' | 'degraded' | 'stuck'
  readonly pending: number
  readonly quarantined: readonly QuarantinedRecord[]
}

export interface RecordKey {
  readonly kind: string
  readonly id: string
}

/** The reconcile loop as a plugin sees it. */
export interface Reconcile {
  /** Marks keys for another pass. */
  mark(keys: readonly RecordKey[]): void
  /** Resolves true when the keys have been through a pass that began after now (or are quarantined), false at the timeout. */
  settled(keys: readonly RecordKey[], options?: { readonly timeoutMs?: number }): Promise<boolean>
  health(): KindHealth[]
}
