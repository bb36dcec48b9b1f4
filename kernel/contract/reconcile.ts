import type { Awaitable } from './awaitable.js'
import type { Kind } from './kind.js'
import type { StoredRecord } from './record.js'

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
export interface Watch<S> {
  readonly kind: Kind
  readonly keys: (self: S, record: StoredRecord) => readonly string[]
}

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

export interface QuarantinedRecord {
  readonly kind: string
  readonly id: string
  readonly error: string
  /** Failures in a row since its last write. */
  readonly attempts: number
  /** Epoch milliseconds of the next try. */
  readonly retryAt: number
}

/**
 * Health of a kind. `stuck`: a pass has been running for 5 s. `degraded`: three passes
 * in a row, retries among them, without one key succeeding. `failing`: some record is quarantined.
 */
export interface KindHealth {
  readonly kind: string
  readonly status: 'healthy' | 'failing' | 'degraded' | 'stuck'
  /** Keys that wait for a pass or are in one. */
  readonly pending: number
  readonly quarantined: readonly QuarantinedRecord[]
}

export interface RecordKey {
  readonly kind: string
  readonly id: string
}

/** The reconcile loop as a plugin sees it. */
export interface Reconcile {
  /**
   * Marks keys for another pass, and what watches their records. Throws for a drop-in `mark_flood`, and marks none of them, beyond
   * 10,000 at once and 100 a second in the long run.
   */
  mark(keys: readonly RecordKey[]): void
  /**
   * Resolves true when everything that was durable or marked before this call has been through a pass that began after it was
   * (or is quarantined): at once where no pass is due. False at the timeout, default 5 s. To be awaited outside of passes.
   */
  settled(keys: readonly RecordKey[], options?: { readonly timeoutMs?: number }): Promise<boolean>
  health(): KindHealth[]
}
