import type { Reads, Tx } from '../../../../kernel/plugin.js'
import type { K } from '../needs.js'
import type { Bounds, Budget } from './bounds.js'
import { TRANSITIONS, type WakeRow, type WakeState, wakes } from './table.js'

/** Used part of a budget, including reservations. */
export interface Spent {
  wakes: number
  wallMs: number
  inputTokens: number
  outputTokens: number
}

/** Dimensions of a budget, in order of evaluation. */
export type Dimension = 'max_wakes' | 'max_total_wall_time' | 'max_input_tokens' | 'max_output_tokens'

const NOTHING: Readonly<Spent> = { wakes: 0, wallMs: 0, inputTokens: 0, outputTokens: 0 }

/** The exhausted dimension of a budget; undefined if none. */
export function exhaustedBy(spent: Readonly<Spent>, bounds: Bounds): Dimension | undefined {
  if (spent.wakes >= bounds.maxWakes) return 'max_wakes'
  if (spent.wallMs >= bounds.maxTotalWallTime) return 'max_total_wall_time'
  if (spent.inputTokens >= bounds.maxInputTokens) return 'max_input_tokens'
  return spent.outputTokens >= bounds.maxOutputTokens ? 'max_output_tokens' : undefined
}

/**
 * Reservation for one more wake: the longest turn and an equal share of the tokens, never more than the remaining
 * budget. The budget must not be exhausted, so that the reservation is positive.
 */
export function reservationOf(spent: Readonly<Spent>, bounds: Bounds): Omit<Spent, 'wakes'> {
  const share = (most: number, used: number) => Math.min(Math.ceil(most / bounds.maxWakes), most - used)
  return {
    wallMs: Math.min(bounds.maxWakeWallTime, bounds.maxTotalWallTime - spent.wallMs),
    inputTokens: share(bounds.maxInputTokens, spent.inputTokens),
    outputTokens: share(bounds.maxOutputTokens, spent.outputTokens),
  }
}

/** Columns written with a state change of a wake. */
type Change = Partial<Omit<WakeRow, 'id' | 'state'>>

/** Wakes and their cost. A wake counts against its budget from its admission on, and is charged once. */
export class Ledger {
  constructor(private readonly kernel: K) {}

  /** Used budgets of owners, by `kind id`. */
  spent(reads: Reads, budgets: readonly Budget[]): Map<string, Spent> {
    const found = new Map<string, Spent>(budgets.map(({ owner }) => [keyOf(owner), { ...NOTHING }]))
    const ids = JSON.stringify([...new Set(budgets.map(({ owner }) => owner.id))])
    const rows = reads.all<Spent & { kind: string; id: string }>(
      `SELECT owner_kind AS kind, owner_id AS id, count(*) AS wakes, sum(wall_ms) AS wallMs, sum(input_tokens) AS inputTokens,
         sum(output_tokens) AS outputTokens FROM network_wake
       WHERE owner_kind IN ('session', 'task_run', 'loop_run', 'automation_run')
         AND owner_id IN (SELECT value FROM json_each(?)) AND state <> 'not_live' GROUP BY owner_kind, owner_id`,
      [ids],
    )
    for (const { kind, id, ...spent } of rows) found.set(keyOf({ kind, id }), spent)
    return found
  }

  /** The wake of a session whose prompt is queued or whose turn runs. */
  inFlight(reads: Reads, sessionId: string): WakeRow | undefined {
    return wakes.query(reads, "WHERE session_id = ? AND state IN ('queued', 'delivered')", [sessionId])[0]
  }

  get(id: string, reads: Reads = this.kernel.db): WakeRow | undefined {
    return wakes.get(reads, { id })
  }

  /** Unfinished wakes. */
  open(): readonly WakeRow[] {
    return wakes.query(this.kernel.db, "WHERE state IN ('reserved', 'queued', 'delivered') ORDER BY reserved_at, id")
  }

  /** Changes the state of a wake. False if its state changed meanwhile; nothing is written then. */
  move(t: Tx, { id, state }: Pick<WakeRow, 'id' | 'state'>, to: WakeState, change: Change = {}): boolean {
    if (!TRANSITIONS[state].includes(to)) throw new Error(`a wake cannot change from ${state} to ${to}`)
    return wakes.update(t, { id, state }, { ...change, state: to }) > 0
  }

  /** Returns the reservation of a wake that woke nothing. */
  giveBack(t: Tx, wake: Pick<WakeRow, 'id' | 'state'>, reason: string): boolean {
    const none = { wallMs: 0, inputTokens: 0, outputTokens: 0, usageState: 'returned' as const }
    return this.move(t, wake, 'not_live', { ...none, reason, settledAt: this.kernel.clock.now() })
  }

  /** Settles a wake after its turn. Unknown costs keep their reserved values. */
  settle(
    t: Tx,
    wake: WakeRow,
    { wallMs, tokens, reason }: { readonly wallMs?: number; readonly tokens?: number; readonly reason?: string },
  ): boolean {
    return this.move(t, wake, 'settled', {
      ...(wallMs !== undefined && { wallMs }),
      // Agents report the tokens of a conversation as a single number.
      ...(tokens !== undefined && { inputTokens: tokens, outputTokens: 0 }),
      usageState: tokens === undefined ? 'usage_unavailable' : 'actual',
      settledAt: this.kernel.clock.now(),
      ...(reason !== undefined && { reason }),
    })
  }
}

export const keyOf = ({ kind, id }: { readonly kind: string; readonly id: string }): string => `${kind} ${id}`
