/** Budgets: limits on tokens, cost and time for a task in total or for an agent per day. */
import * as v from 'valibot'
import { Integer, Timestamp } from '../kernel/common.js'

export const BudgetKind = v.picklist(['task', 'agent'])
export type BudgetKind = v.InferOutput<typeof BudgetKind>

const tokens = v.nullish(Integer)
const cost = v.nullish(v.number())

/** Amounts; an omitted or null member is unlimited, or was not reported. */
export const BudgetAmounts = v.object({ tokens, cost_usd: cost, wall_seconds: cost })
export type BudgetAmounts = v.InferOutput<typeof BudgetAmounts>

/** A budget with its current usage. */
export const Budget = v.object({
  kind: BudgetKind,
  ref: v.pipe(v.string(), v.description('task ID or agent name')),
  /** `day`: a UTC day. */
  period: v.picklist(['total', 'day']),
  limit: BudgetAmounts,
  spent: BudgetAmounts,
  /** Unused amounts reserved by active runs. */
  reserved: BudgetAmounts,
  left: BudgetAmounts,
  exhausted: v.boolean(),
  updated_at: Timestamp,
})
export type Budget = v.InferOutput<typeof Budget>

/** PUT of a budget: an omitted limit is unlimited. */
export const SetBudgetBody = v.strictObject({
  tokens: v.optional(v.pipe(Integer, v.description('token limit, as reported by the agent'))),
  cost_usd: v.optional(v.pipe(v.number(), v.description('cost limit in US dollars, as reported by the agent'))),
  wall_seconds: v.optional(v.pipe(Integer, v.description('time limit in seconds, counted while runs hold a lease'))),
})
export type SetBudgetBody = v.InferOutput<typeof SetBudgetBody>

export const BudgetReply = v.object({ budget: Budget })
export const BudgetsReply = v.object({ budgets: v.array(Budget) })
