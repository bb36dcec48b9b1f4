import { noContent, ok, routeOf } from '../../../kernel/plugin.js'
import { BudgetKind, BudgetReply, BudgetsReply, SetBudgetBody } from '../../../schemas/tasks.js'
import type { TaskService } from '../service.js'
import { whoOf } from '../who.js'
import { BudgetErrors } from './errors.js'

const route = routeOf<TaskService>()
const area = 'Task budgets'
const one = {
  item: 'budget',
  fields: [
    { header: 'Of', path: 'kind' },
    { header: 'Name', path: 'ref' },
    { header: 'Period', path: 'period' },
    { header: 'Tokens', path: 'limit.tokens' },
    { header: 'Tokens used', path: 'spent.tokens' },
    { header: 'Tokens reserved', path: 'reserved.tokens' },
    { header: 'US dollars', path: 'limit.cost_usd' },
    { header: 'US dollars used', path: 'spent.cost_usd' },
    { header: 'US dollars reserved', path: 'reserved.cost_usd' },
    { header: 'Time', path: 'limit.wall_seconds', as: 'duration' },
    { header: 'Time used', path: 'spent.wall_seconds', as: 'duration' },
    { header: 'Used up', path: 'exhausted' },
  ],
} as const

function kindOf(text: string): BudgetKind {
  const kind = BudgetKind.options.find(option => option === text)
  if (kind === undefined) throw BudgetErrors.task_budget_invalid('kind: task or agent')
  return kind
}

export const budgetRoutes = [
  route({
    method: 'GET',
    path: '/api/budgets',
    area,
    summary: 'List what tasks and agents may use, and what they have used of it',
    replies: { 200: BudgetsReply },
    errors: [500, 503],
    cli: {
      path: 'budget list',
      view: {
        rows: 'budgets',
        columns: [
          { header: 'NAME', path: 'ref' },
          { header: 'OF', path: 'kind' },
          { header: 'TOKENS', path: 'limit.tokens' },
          { header: 'USED', path: 'spent.tokens' },
          { header: 'USD', path: 'limit.cost_usd' },
          { header: 'USED', path: 'spent.cost_usd' },
          { header: 'TIME', path: 'limit.wall_seconds', as: 'duration' },
          { header: 'USED', path: 'spent.wall_seconds', as: 'duration' },
          { header: 'OVER', path: 'exhausted' },
        ],
        empty: 'no budgets; set one: svc budget set task <id> --tokens 100000',
      },
    },
    handle: self => ok({ budgets: self.budgets.list() }),
  }),
  route({
    method: 'GET',
    path: '/api/budgets/{kind}/{ref}',
    area,
    summary: 'Show the budget of a task or an agent',
    replies: { 200: BudgetReply },
    errors: [404, 422, 500, 503],
    cli: { path: 'budget show', view: one },
    handle: (self, { params }) => ok({ budget: self.budgets.show(kindOf(params.kind), params.ref) }),
  }),
  route({
    method: 'PUT',
    path: '/api/budgets/{kind}/{ref}',
    area,
    summary: 'Set what the runs of a task, or those of an agent in a day, may use; what is left out is not limited',
    body: SetBudgetBody,
    invalid: 422,
    replies: { 200: BudgetReply },
    errors: [404, 422, 500, 503],
    cli: { path: 'budget set', view: one },
    handle: async (self, { actor, params, body }) =>
      ok({ budget: await self.budgets.set(whoOf(actor), kindOf(params.kind), params.ref, body) }),
  }),
  route({
    method: 'DELETE',
    path: '/api/budgets/{kind}/{ref}',
    area,
    summary: 'Remove a budget: nothing is limited by it from then on',
    essential: true,
    replies: { 204: null },
    errors: [404, 422, 500, 503],
    cli: { path: 'budget remove', done: 'the budget is removed' },
    handle: async (self, { actor, params }) => {
      await self.budgets.remove(whoOf(actor), kindOf(params.kind), params.ref)
      return noContent()
    },
  }),
]
