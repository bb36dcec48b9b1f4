import { defineErrors } from '../../../kernel/plugin.js'

/** What is refused about budgets. */
export const BudgetErrors = defineErrors({
  task_budget_not_found: { status: 404, message: 'there is no such budget', next: 'svc budget list' },
  task_budget_invalid: { status: 422, message: 'the budget is not valid', next: 'svc budget set --help' },
  AUTONOMY_BUDGET_EXHAUSTED: {
    status: 409,
    message: 'the budget is used up, or reserved by runs that are held',
    next: 'svc budget list',
  },
  AUTONOMY_BUDGET_UNMEASURED: {
    status: 409,
    message: 'the agent does not tell what it uses; a budget of time alone can hold it',
    next: 'svc budget list',
  },
})
