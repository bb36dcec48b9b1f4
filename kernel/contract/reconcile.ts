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
