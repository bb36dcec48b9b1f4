import { cli, describe } from '../../../../kernel/kit/annotations/index.js'
import { shown } from '../../../../kernel/kit/text.js'
import { noContent, ok, routeOf } from '../../../../kernel/plugin.js'
import { BudgetKind, BudgetReply, BudgetsReply, SetBudgetBody } from '../../../../schemas/tasks.js'
import { undo } from '../../../desk/changes/api.js'
import type { TaskService } from '../service.js'
import { whoOf } from '../who.js'
import { BudgetErrors } from './errors.js'

const route = routeOf<TaskService>(describe('Task budgets'))
const ARGS = [
  { name: 'kind', in: 'path', summary: 'task or agent' },
  { name: 'ref', in: 'path', summary: 'task ID or agent name' },
] as const
const one = {
  item: 'budget',
  fields: [
    { header: 'Kind', path: 'kind' },
    { header: 'Name', path: 'ref' },
    { header: 'Period', path: 'period' },
    { header: 'Token limit', path: 'limit.tokens' },
    { header: 'Tokens used', path: 'spent.tokens' },
    { header: 'Tokens reserved', path: 'reserved.tokens' },
    { header: 'Cost limit (USD)', path: 'limit.cost_usd' },
    { header: 'Cost used (USD)', path: 'spent.cost_usd' },
    { header: 'Cost reserved (USD)', path: 'reserved.cost_usd' },
    { header: 'Time limit', path: 'limit.wall_seconds', as: 'duration' },
    { header: 'Time used', path: 'spent.wall_seconds', as: 'duration' },
    { header: 'Exhausted', path: 'exhausted' },
  ],
} as const

function kindOf(text: string): BudgetKind {
  const kind = BudgetKind.options.find(option => option === text)
  if (kind === undefined)
    throw BudgetErrors.task_budget_invalid(`invalid budget kind: ${shown(text)}; use task or agent`)
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
        view: {
          rows: 'budgets',
          columns: [
            { header: 'NAME', path: 'ref' },
            { header: 'KIND', path: 'kind' },
            { header: 'TOKENS', path: 'limit.tokens' },
            { header: 'USED', path: 'spent.tokens' },
            { header: 'USD', path: 'limit.cost_usd' },
            { header: 'USED', path: 'spent.cost_usd' },
            { header: 'TIME', path: 'limit.wall_seconds', as: 'duration' },
            { header: 'USED', path: 'spent.wall_seconds', as: 'duration' },
            { header: 'EXHAUSTED', path: 'exhausted' },
          ],
          empty: 'no budgets. Set one: svc budget set task <id> --tokens 100000',
        },
      }),
    ],
    handle: self => ok({ budgets: self.budgets.list() }),
  }),
  route({
    method: 'GET',
    path: '/api/budgets/{kind}/{ref}',
    summary: 'Show the budget of a task or an agent',
    replies: { 200: BudgetReply },
    with: [cli('budget show', { args: ARGS, view: one })],
    handle: (self, { params }) => ok({ budget: self.budgets.show(kindOf(params.kind), params.ref) }),
  }),
  route({
    method: 'PUT',
    path: '/api/budgets/{kind}/{ref}',
    summary: 'Set the total budget of a task or the daily budget of an agent; an omitted limit is unlimited',
    body: SetBudgetBody,
    invalid: 422,
    replies: { 200: BudgetReply },
    with: [undo({ by: 'put', of: 'budget.limit' }), cli('budget set', { args: ARGS, view: one })],
    handle: async (self, { actor, params, body }) =>
      ok({ budget: await self.budgets.set(whoOf(actor), kindOf(params.kind), params.ref, body) }),
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
    ],
    handle: async (self, { actor, params }) => {
      await self.budgets.remove(whoOf(actor), kindOf(params.kind), params.ref)
      return noContent()
    },
  }),
]
