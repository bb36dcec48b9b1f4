/** Budgets: what the runs of a task, or those of an agent in a day, may use of tokens, money and time. */
import * as v from 'valibot'
import { Integer, Timestamp } from '../kernel/common.js'

export const BudgetKind = v.picklist(['task', 'agent'])
export type BudgetKind = v.InferOutput<typeof BudgetKind>

const tokens = v.nullish(Integer)
const cost = v.nullish(v.number())

/** Amounts; a member that is absent or null is not limited, or was not told. */
export const BudgetAmounts = v.object({ tokens, cost_usd: cost, wall_seconds: cost })
export type BudgetAmounts = v.InferOutput<typeof BudgetAmounts>

/** A budget and how it stands. */
export const Budget = v.object({
  kind: BudgetKind,
  ref: v.pipe(v.string(), v.description('id of the task, or name of the agent')),
  /** `day`: a day in UTC. */
  period: v.picklist(['total', 'day']),
  limit: BudgetAmounts,
  spent: BudgetAmounts,
  /** What runs that are held now may still use. */
  reserved: BudgetAmounts,
  left: BudgetAmounts,
  exhausted: v.boolean(),
  updated_at: Timestamp,
})
export type Budget = v.InferOutput<typeof Budget>

/** PUT of a budget: what is left out is not limited. */
export const SetBudgetBody = v.strictObject({
  tokens: v.optional(v.pipe(Integer, v.description('tokens, as the agent tells of them'))),
  cost_usd: v.optional(v.pipe(v.number(), v.description('US dollars, as the agent tells of them'))),
  wall_seconds: v.optional(v.pipe(Integer, v.description('seconds that runs are held'))),
})
export type SetBudgetBody = v.InferOutput<typeof SetBudgetBody>

export const BudgetReply = v.object({ budget: Budget })
export const BudgetsReply = v.object({ budgets: v.array(Budget) })
