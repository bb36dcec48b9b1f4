import { command } from '../../../../kernel/kit/commands/command-line.js'
import { defineErrors } from '../../../../kernel/plugin.js'

/** Budget errors. */
export const BudgetErrors = defineErrors({
  task_budget_not_found: { status: 404, message: 'budget not found', next: command('budget list') },
  task_budget_invalid: { status: 422, message: 'invalid budget', next: command('budget set', '--help') },
  AUTONOMY_BUDGET_EXHAUSTED: {
    status: 409,
    message: 'the budget is used up or reserved by active runs',
    next: command('budget list'),
  },
  AUTONOMY_BUDGET_UNMEASURED: {
    status: 409,
    message: 'the agent does not report its usage; only a time budget can limit it',
    next: command('budget list'),
  },
})
