import type { SetBudgetBody } from '../../../../schemas/tasks.js'
import type { Limits } from './amounts.js'
import { BudgetErrors } from './errors.js'

/** Largest limits: tokens, US dollars, seconds. */
const MOST = { tokens: 1e15, cost: 1e9, seconds: 366 * 86_400 }

export const invalid = (text: string) => BudgetErrors.task_budget_invalid(text)

/** The limits that a body sets. Throws `task_budget_invalid` (422). */
export function checked({ tokens, cost_usd: cost, wall_seconds: seconds }: SetBudgetBody): Limits {
  const within = (name: string, value: number | undefined, most: number) => {
    if (value !== undefined && !(value > 0 && value <= most))
      throw invalid(`${name}: must be greater than 0 and at most ${most}, not ${value}`)
    return value ?? null
  }
  const limits = {
    tokens: within('tokens', tokens, MOST.tokens),
    cost: within('cost_usd', cost, MOST.cost),
    wall_ms: within('wall_seconds', seconds, MOST.seconds),
  }
  if (Object.values(limits).every(limit => limit === null))
    throw invalid('set at least one of tokens, cost_usd and wall_seconds')
  return { ...limits, wall_ms: limits.wall_ms === null ? null : limits.wall_ms * 1000 }
}
