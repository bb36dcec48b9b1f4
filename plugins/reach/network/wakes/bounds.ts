import type { OwnerKind } from './table.js'

/** Limits of the wakes of one participation; times in milliseconds. */
export interface Bounds {
  readonly maxWakes: number
  readonly maxWakeDepth: number
  /** Of one turn. */
  readonly maxWakeWallTime: number
  /** Of all turns together, as the tokens are. */
  readonly maxTotalWallTime: number
  readonly maxInputTokens: number
  readonly maxOutputTokens: number
  /** Messages of this time after the first one go into one prompt. */
  readonly coalesceWindow: number
}

/** Whose budget the wakes of a session are charged to, and how large it is. */
export interface Budget {
  readonly owner: { readonly kind: OwnerKind; readonly id: string }
  /** The run that the session works on. */
  readonly taskRunId?: string | undefined
  readonly bounds: Bounds
}

/** Finds the budget of a session. */
export type BoundsOf = (sessionId: string) => Budget
