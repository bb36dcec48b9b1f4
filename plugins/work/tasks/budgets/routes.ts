import { cli, describe, show, throws } from '../../../../kernel/kit/annotations/index.js'
import { shown } from '../../../../kernel/kit/text.js'
import { noContent, ok, routeOf } from '../../../../kernel/plugin.js'
import { BudgetKind, BudgetReply, BudgetsReply, SetBudgetBody } from '../../../../schemas/tasks.js'
import { undo } from '../../../desk/changes/api.js'
import { CHANGING } from '../routing.js'
import type { TaskService } from '../service.js'
import { whoOf } from '../who.js'
import { BudgetErrors } from './errors.js'

const route = routeOf<TaskService>(describe('Task budgets'))
const ARGS = [
  { name: 'kind', in: 'path', summary: 'task or agent' },
  { name: 'ref', in: 'path', summary: 'task ID or agent name' },
] as const
const { task_budget_not_found, task_budget_invalid } = BudgetErrors
const one = show(BudgetReply, 'budget', [
  'kind',
  { of: 'ref', header: 'Name' },
  'period',
  { of: 'limit.tokens', header: 'Token limit' },
  { of: 'spent.tokens', header: 'Tokens used' },
  { of: 'reserved.tokens', header: 'Tokens reserved' },
  { of: 'limit.cost_usd', header: 'Cost limit (USD)' },
  { of: 'spent.cost_usd', header: 'Cost used (USD)' },
  { of: 'reserved.cost_usd', header: 'Cost reserved (USD)' },
  { of: 'limit.wall_seconds~duration', header: 'Time limit' },
  { of: 'spent.wall_seconds~duration', header: 'Time used' },
  'exhausted',
])

function kindOf(text: string): BudgetKind {
  const kind = BudgetKind.options.find(option => option === text)
  if (kind === undefined) throw task_budget_invalid(`invalid budget kind: ${shown(text)}; use task or agent`)
  return kind
}

export const budgetRoutes = [
  route({
    method: 'GET',
    path: '/api/budgets',
    summary: 'List the budgets of tasks and agents',
    replies: { 200: BudgetsReply },
    with: [
      cli('budget list', {
        view: show(
          BudgetsReply,
          'budgets',
          [
            { of: 'ref', header: 'Name' },
            'kind',
            'limit.tokens',
            { of: 'spent.tokens', header: 'Used' },
            { of: 'limit.cost_usd', header: 'USD' },
            { of: 'spent.cost_usd', header: 'Used' },
            { of: 'limit.wall_seconds~duration', header: 'Time' },
            { of: 'spent.wall_seconds~duration', header: 'Used' },
            'exhausted',
          ],
          { empty: 'no budgets. Set one: svc budget set task <id> --tokens 100000' },
        ),
      }),
    ],
    handle: service => ok({ budgets: service.budgets.list() }),
  }),
  route({
    method: 'GET',
    path: '/api/budgets/{kind}/{ref}',
    summary: 'Show the budget of a task or an agent',
    replies: { 200: BudgetReply },
    with: [cli('budget show', { args: ARGS, view: one }), throws(task_budget_not_found, task_budget_invalid)],
    handle: (service, { params }) => ok({ budget: service.budgets.show(kindOf(params.kind), params.ref) }),
  }),
  route({
    method: 'PUT',
    path: '/api/budgets/{kind}/{ref}',
    summary: 'Set the total budget of a task or the daily budget of an agent; an omitted limit is unlimited',
    body: SetBudgetBody,
    invalid: 422,
    replies: { 200: BudgetReply },
    with: [
      undo({ by: 'put', of: 'budget.limit' }),
      cli('budget set', { args: ARGS, view: one }),
      throws(task_budget_invalid, ...CHANGING),
    ],
    handle: async (service, { actor, params, body }) =>
      ok({ budget: await service.budgets.set(whoOf(actor), kindOf(params.kind), params.ref, body) }),
  }),
  route({
    method: 'DELETE',
    path: '/api/budgets/{kind}/{ref}',
    summary: 'Remove the budget of a task or an agent',
    essential: true,
    replies: { 204: null },
    with: [
      undo({ by: 'put', of: 'budget.limit' }),
      cli('budget remove', { args: ARGS, done: 'removed the budget of {kind} {ref}' }),
      throws(task_budget_not_found, task_budget_invalid),
    ],
    handle: async (service, { actor, params }) => {
      await service.budgets.remove(whoOf(actor), kindOf(params.kind), params.ref)
      return noContent()
    },
  }),
]
