import type { SessionInfo } from '../../sessions/api.js'
import { type Dimension, inWords, type Limits } from './amounts.js'
import { BudgetErrors } from './errors.js'
import { toldOf } from './ledger.js'
import type { BudgetRow } from './tables.js'
import type { Told } from './uses.js'

/** What is used up, for people. */
export const wordsOf = (budget: BudgetRow, name: Dimension, used: number): string =>
  `${inWords(name, used, budget[name] ?? 0)}, the budget of ${budget.kind} ${budget.ref}${budget.kind === 'agent' ? ' for today' : ''}`

export const exhausted = (budget: BudgetRow, name: Dimension) =>
  BudgetErrors.AUTONOMY_BUDGET_EXHAUSTED(
    `the ${name === 'wall_ms' ? 'time' : name} in the budget of ${budget.kind} ${budget.ref} is used up or reserved`,
    { next: `svc budget show ${budget.kind} ${budget.ref}` },
  )

/** Throws `AUTONOMY_BUDGET_UNMEASURED` (409) where an agent is known not to tell of what is limited. */
export function judgeMeasured(limits: Limits, { agentName }: SessionInfo, tells: Told | undefined): void {
  const missing = tells && toldOf(limits).find(name => !tells[name])
  if (missing === undefined) return
  const text = `agent ${agentName} does not tell of its ${missing}; a budget of time alone can hold it`
  throw BudgetErrors.AUTONOMY_BUDGET_UNMEASURED(text)
}
