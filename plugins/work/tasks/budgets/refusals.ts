import { command } from '../../../../kernel/kit/commands/command-line.js'
import { Fault, type Reads } from '../../../../kernel/plugin.js'
import type { SessionInfo } from '../../sessions/api.js'
import { type Dimension, inWords, type Limits } from './amounts.js'
import { BudgetErrors } from './errors.js'
import { toldOf } from './ledger.js'
import type { BudgetRow } from './tables.js'
import type { Told } from './uses.js'

/** Decides whether budgets allow a session to claim a run. */
interface Judge {
  judgeAgent(reads: Reads, session: SessionInfo): void
  judgeTask(reads: Reads, session: SessionInfo, task: string): void
}

/** The reason why budgets do not allow a session to claim runs of a task; undefined when they do. */
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

/** Describes an exhausted budget. */
export const wordsOf = (budget: BudgetRow, name: Dimension, used: number): string =>
  `${inWords(name, used, budget[name] ?? 0)} in the ${budget.kind === 'agent' ? 'daily ' : ''}budget of ${budget.kind} ${budget.ref}`

const NAMES: { readonly [D in Dimension]: string } = { tokens: 'token', cost: 'cost', wall_ms: 'time' }

export const exhausted = (budget: BudgetRow, name: Dimension) =>
  BudgetErrors.AUTONOMY_BUDGET_EXHAUSTED(
    `the ${NAMES[name]} budget of ${budget.kind} ${budget.ref} is used up or reserved by active runs`,
    { next: command('budget show', budget.kind, budget.ref) },
  )

/** Throws `AUTONOMY_BUDGET_UNMEASURED` (409) when the agent is known not to report a limited dimension. */
export function judgeMeasured(limits: Limits, { agentName }: SessionInfo, tells: Told | undefined): void {
  const missing = tells && toldOf(limits).find(name => !tells[name])
  if (missing === undefined) return
  const text = `agent ${agentName} does not report its ${missing}; only a time budget can limit it`
  throw BudgetErrors.AUTONOMY_BUDGET_UNMEASURED(text)
}
