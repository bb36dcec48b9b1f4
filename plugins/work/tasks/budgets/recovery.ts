import { command, placeholder } from '../../../../kernel/kit/commands/command-line.js'
import type { TaskCore } from '../core.js'
import { latestWorker } from '../workers/worker-row.js'
import { type Dimension, type Limits, NOTHING, toWire, usedUp } from './amounts.js'
import { Ledger, limitsOf } from './ledger.js'
import type { BudgetRow } from './tables.js'

/** Factor by which the suggested limit exceeds the exhausted one. */
const MORE = 2

/** The command that recovers a run. An exhausted budget has to be raised first, since the next attempt would fail the same way. */
export function recoveryOf(
  core: TaskCore,
  run: { readonly id: string; readonly task_id: string; readonly session_id: string | null },
): string {
  const { db, needs } = core.kernel
  const ledger = new Ledger(db, () => core.now())
  const session = run.session_id ?? latestWorker(db, run.id)?.session_id
  const agent = session ? needs.sessions.get(session)?.agentName : undefined
  const budgets = [ledger.budget('task', run.task_id), agent === undefined ? undefined : ledger.budget('agent', agent)]
  for (const budget of budgets) {
    const name = budget && usedUp(ledger.left(budget, run.id), NOTHING)
    if (budget && name) return raiseOf(budget, name, ledger.spent(budget.kind, budget.ref)[name])
  }
  return command('task run recover', run.id, '--reason', placeholder('text'))
}

/** Repeats all limits of the budget: `svc budget set` removes a limit that is omitted. */
function raiseOf(budget: BudgetRow, name: Dimension, spent: number): string {
  const limits: Limits = { ...limitsOf(budget), [name]: Math.max(budget[name] ?? 0, spent) * MORE }
  const { tokens = null, cost_usd = null, wall_seconds = null } = toWire(limits)
  const options = [
    ...(tokens === null ? [] : ['--tokens', tokens]),
    ...(cost_usd === null ? [] : ['--cost-usd', cost_usd]),
    ...(wall_seconds === null ? [] : ['--wall-seconds', Math.ceil(wall_seconds)]),
  ]
  return command('budget set', budget.kind, budget.ref, ...options)
}
