import { Fault, type Reads } from '../../../kernel/plugin.js'
import type { SessionInfo } from '../../sessions/api.js'
import { type Dimension, inWords, type Limits } from './amounts.js'
import { BudgetErrors } from './errors.js'
import { toldOf } from './ledger.js'
import type { BudgetRow } from './tables.js'
import type { Told } from './uses.js'

/** What says whether budgets keep a session from a run. */
interface Judge {
  judgeAgent(reads: Reads, session: SessionInfo): void
  judgeTask(reads: Reads, session: SessionInfo, task: string): void
}

/** Why budgets keep a session from the runs of a task, for people; undefined where they do not. */
export function refusalOf(
  judge: Judge,
  reads: Reads,
  session: SessionInfo | undefined,
  task: string,
): string | undefined {
  if (session === undefined) return undefined
  try {
    judge.judgeTask(reads, session, task)
    judge.judgeAgent(reads, session)
    return undefined
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return `${error.code}: ${error.message}`
  }
}

/** What is used up, for people. */
export const wordsOf = (budget: BudgetRow, name: Dimension, used: number): string =>
  `${inWords(name, used, budget[name] ?? 0)}, the budget of ${budget.kind} ${budget.ref}${budget.kind === 'agent' ? ' for today' : ''}`

const NAMES: { readonly [D in Dimension]: string } = { tokens: 'tokens are', cost: 'money is', wall_ms: 'time is' }

export const exhausted = (budget: BudgetRow, name: Dimension) =>
  BudgetErrors.AUTONOMY_BUDGET_EXHAUSTED(
    `no ${NAMES[name]} left in the budget of ${budget.kind} ${budget.ref}: used up, or reserved by runs that are held`,
    { next: `svc budget show ${budget.kind} ${budget.ref}` },
  )

/** Throws `AUTONOMY_BUDGET_UNMEASURED` (409) where an agent is known not to tell of what is limited. */
export function judgeMeasured(limits: Limits, { agentName }: SessionInfo, tells: Told | undefined): void {
  const missing = tells && toldOf(limits).find(name => !tells[name])
  if (missing === undefined) return
  const text = `agent ${agentName} does not tell of its ${missing}; a budget of time alone can hold it`
  throw BudgetErrors.AUTONOMY_BUDGET_UNMEASURED(text)
}
