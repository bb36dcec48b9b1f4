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

const MINUTE = 60_000

export const DEFAULT_BOUNDS: Bounds = {
  maxWakes: 8,
  maxWakeDepth: 3,
  maxWakeWallTime: 5 * MINUTE,
  maxTotalWallTime: 30 * MINUTE,
  maxInputTokens: 200_000,
  maxOutputTokens: 50_000,
  coalesceWindow: 500,
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

/** A session that takes part of its own accord has a budget of its own with the default limits. */
export const boundsOf: BoundsOf = id => ({ owner: { kind: 'session', id }, bounds: DEFAULT_BOUNDS })
