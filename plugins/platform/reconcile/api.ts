/** `svc/plugins/reconcile`: the reconcile loop and its health. */
import { defineErrors, type HooksOf, hookTable, notify, type TapsOf, token } from '../../../kernel/plugin.js'

export interface QuarantinedRecord {
  readonly kind: string
  readonly id: string
  readonly error: string
  /** Consecutive failures since its last write. */
  readonly attempts: number
  /** Epoch milliseconds of the next attempt. */
  readonly retryAt: number
}

/**
 * Health of a kind. `stuck`: a pass has been running for 5 s. `degraded`: three passes in a row, retries included, without one
 * successful key. `failing`: a record is quarantined.
 */
export interface KindHealth {
  readonly kind: string
  readonly status: 'healthy' | 'failing' | 'degraded' | 'stuck'
  /** Number of keys that wait for a pass or are in one. */
  readonly pending: number
  readonly quarantined: readonly QuarantinedRecord[]
}

export interface RecordKey {
  readonly kind: string
  readonly id: string
}

/** The hooks of the loop. */
export const points = hookTable({
  passed: notify<[kind: string, ids: readonly string[], failed: number, milliseconds: number]>(
    'passed',
    'A reconcile pass over records of one kind has ended, with its duration; `failed` of the records failed.',
  ),
})

export type Passed = HooksOf<typeof points>['passed']

/** The reconcile loop for a plugin that requires it. */
export interface ReconcileApi extends TapsOf<typeof points> {
  /**
   * Marks keys, and the keys that watch their records, for another pass. Throws `mark_flood` for a drop-in, without marking any,
   * beyond a burst of 10,000 and a sustained 100 marks/s.
   */
  mark(keys: readonly RecordKey[]): void
  /**
   * Resolves true when every change that was durable or marked before this call has been through a pass that began later (or is
   * quarantined); at once when no pass is due. False at the timeout, default 5 s. Do not await it within a pass.
   */
  settled(keys: readonly RecordKey[], options?: { readonly timeoutMs?: number }): Promise<boolean>
  health(): KindHealth[]
}

/** Errors of the loop. */
export const ReconcileErrors = defineErrors({
  mark_flood: { status: 429, message: 'this plugin marks too many records; try again later' },
})

export const Reconcile = token<ReconcileApi>('reconcile@1')
