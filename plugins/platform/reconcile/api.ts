/** `svc/plugins/reconcile`: what follows records, and how it is doing. */
import { defineErrors, type HooksOf, hookTable, notify, type TapsOf, token } from '../../../kernel/plugin.js'

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

/** The hooks of the loop. */
export const points = hookTable({
  passed: notify<[kind: string, ids: readonly string[], failed: number, milliseconds: number]>(
    'passed',
    'A pass over records of one kind has ended, and took so long; `failed` of them failed.',
  ),
})

export type Passed = HooksOf<typeof points>['passed']

/** The reconcile loop as the plugin that requires it sees it. */
export interface ReconcileApi extends TapsOf<typeof points> {
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

/** Requires the loop itself; a plugin that has reconcilers on its surface need not. */
export const ReconcileErrors = defineErrors({
  mark_flood: { status: 429, message: 'this plugin marks too many records; try again later' },
})

export const Reconcile = token<ReconcileApi>('reconcile@1')
