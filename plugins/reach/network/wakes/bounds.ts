import type { OwnerKind } from './table.js'

/** Limits for the wakes of one participation; times in milliseconds. */
export interface Bounds {
  readonly maxWakes: number
  readonly maxWakeDepth: number
  /** Limit of one turn. */
  readonly maxWakeWallTime: number
  /** Limit of all turns together, as for the tokens. */
  readonly maxTotalWallTime: number
  readonly maxInputTokens: number
  readonly maxOutputTokens: number
  /** Time after the first message in which further ones join the same prompt. */
  readonly coalesceWindow: number
}

/** The owner and size of the budget for a session's wakes. */
export interface Budget {
  readonly owner: { readonly kind: OwnerKind; readonly id: string }
  /** The run that the session works on. */
  readonly taskRunId?: string | undefined
  readonly bounds: Bounds
}

/** Finds the budget of a session. */
export type BoundsOf = (sessionId: string) => Budget
