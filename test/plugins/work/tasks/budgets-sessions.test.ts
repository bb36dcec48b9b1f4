// timeout: 120s
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { tasks } from '../../../../plugins/index.js'
import { eventually, openWorld, type World } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'

const test = suite<{ world: World }>('budgets of real sessions')

test.before.each(async context => {
  const world = await openWorld({
    config: { observability: { transcripts: { max_bytes_per_session: 1024 * 1024 } } },
    plugins: [tasks],
  })
  await world.agent('ada')
  context.world = world
})
test.after.each(({ world }) => world.close())

const used = (tokens: unknown, more: object = {}) =>
  `update ${JSON.stringify({ sessionUpdate: 'usage_update', used: tokens, size: 1_000_000, ...more })}`

/** A session that holds a run under a budget. */
async function holder(world: World, limits: object): Promise<{ run: string; task: string; id: string; at: string }> {
  const post = async (url: string, body: object = {}) => (await world.kernel.request('POST', url, body)).body
  const { task } = await post('/api/tasks', { title: 'work', scope: 'workspace', workspace: world.workspaceId })
  await world.kernel.request('PUT', `/api/budgets/task/${task.id}`, limits)
  const { run } = await post(`/api/tasks/${task.id}/start`)
  const { id, at } = await world.session('ada')
  const headers = { 'x-service-session-id': id, 'x-service-agent': 'ada' }
  const body = { run_id: run.id, scope: 'workspace' }
  const claimed = await world.kernel.kernel.inject({
    method: 'POST',
    url: '/api/agent/tasks/claim-next',
    headers,
    body,
  })
  assert.is(claimed.status, 200, claimed.body)
  return { run: run.id, task: task.id, id, at }
}

const runOf = async (world: World, { run }: { run: string }): Promise<Reply> =>
  (await world.kernel.request('GET', `/api/task-runs/${run}`)).body.run.run
const spentOf = async (world: World, { task }: { task: string }): Promise<Reply> =>
  (await world.kernel.request('GET', `/api/budgets/task/${task}`)).body.budget.spent
const stopped = (world: World, of: { run: string }) =>
  eventually(async () => {
    const run = await runOf(world, of)
    return run.status === 'needs_attention' && run
  }, 'the run to be stopped')

test('usage counts even when the session journal is full', async ({ world }) => {
  const held = await holder(world, { tokens: 1000 })
  await world.prompt(held.at, [used(100), 'flood 6000', 'say end'].join('\n'))
  const full = (await world.events(held.at)).filter(event => event.content.warning === 'journal_full')
  assert.is(full.length, 1)
  await world.kernel.request('POST', `${held.at}/prompt`, { text: [used(600), used(1100), 'sleep 60000'].join('\n') })
  assert.match((await stopped(world, held)).error, /^budget_exhausted: 1100 tokens/)
  await eventually(async () => (await world.row(held.id)).badge !== 'running', 'the end of the turn')
})

test('an invalid number in a usage report is ignored', async ({ world }) => {
  const held = await holder(world, { tokens: 1000, cost_usd: 10 })
  await world.prompt(held.at, [used(500, { cost: { amount: 1, currency: 'USD' } })].join('\n'))
  for (const [tokens, amount] of [
    [-100_000, -50],
    ['NaN', 'many'],
    [1.5, null],
  ])
    await world.prompt(
      held.at,
      [used(tokens, { cost: { amount, currency: 'USD' } }), used(500, { cost: { amount: 1 } })].join('\n'),
    )
  const spent = await spentOf(world, held)
  assert.equal([spent.tokens, spent.cost_usd, (await runOf(world, held)).status], [500, 1, 'claimed'])
  await world.prompt(held.at, used(-1))
  assert.match((await stopped(world, held)).error, /^budget_unmeasured: /)
})

test('a run under a budget reports a crash of its agent also when the turn ended without a report', async ({
  world,
}) => {
  const held = await holder(world, { tokens: 1000 })
  await world.kernel.request('POST', `${held.at}/prompt`, { text: 'exit 3' })
  const { error, failure_kind: kind } = await stopped(world, held)
  assert.not.match(error, /budget/)
  assert.is.not(kind, 'budget_exceeded')
})

test('an agent that reports an absurdly high usage is stopped whatever it reports next', async ({ world }) => {
  const held = await holder(world, { tokens: 1000 })
  const text = [used(Number.MAX_SAFE_INTEGER), used(1), used(Number.MAX_SAFE_INTEGER), 'sleep 60000'].join('\n')
  await world.kernel.request('POST', `${held.at}/prompt`, { text })
  await stopped(world, held)
  assert.ok((await spentOf(world, held)).tokens >= 1e15)
})

test.run()
