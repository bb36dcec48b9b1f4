import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, surfaceOf } from '../../../../kernel/plugin.js'
import { Events } from '../../../../plugins/platform/events/api.js'
import type { Reply } from '../../../harness/kernel.js'
import { type Agent, type Scene, scene } from './scene.js'

const SECOND = 1000
const test = suite<{ world: Scene }>('budgets of tasks and agents')

test.before.each(async context => {
  context.world = await scene({
    tells: new Map([
      ['mute', { tokens: false, cost: false }],
      ['ada', { tokens: true, cost: true }],
    ]),
  })
})
test.after.each(({ world }) => world.close())

const set = (world: Scene, of: string, body: object) => world.request('PUT', `/api/budgets/${of}`, body)
const budget = async (world: Scene, of: string): Promise<Reply> =>
  (await world.request('GET', `/api/budgets/${of}`)).body.budget
const held = async (of: { task: string; run: string }, agent: Agent) => {
  const claimed = await agent.claim({ run_id: of.run })
  assert.is(claimed.status, 200, JSON.stringify(claimed.body))
}
const stateOf = async (world: Scene, { task, run }: { task: string; run: string }) => {
  const { status, error = '', failure_kind } = await world.run(run, task)
  return [status, failure_kind, error.split(':')[0]]
}
const STOPPED = ['needs_attention', 'budget_exceeded', 'budget_exhausted']

test('a run that exceeds its task budget is stopped at the next usage report and needs attention', async ({
  world,
}) => {
  const work = await world.queued()
  assert.is((await set(world, `task/${work.task}`, { tokens: 1000 })).status, 200)
  const ada = world.agent()
  await held(work, ada)
  assert.is((await budget(world, `task/${work.task}`)).reserved.tokens, 1000)
  await world.use(ada, { tokens: 400 })
  await world.use(ada, { tokens: 900 })
  const { spent, left, exhausted } = await budget(world, `task/${work.task}`)
  assert.equal([spent.tokens, left.tokens, exhausted], [900, 0, false])
  assert.equal(world.interrupted, [])
  await world.use(ada, { tokens: 1300 })
  assert.equal(await stateOf(world, work), STOPPED)
  assert.equal(world.interrupted, [ada.id])
  const { task } = await world.task(work.task)
  assert.equal(
    [task.status, task.needs_attention_reason],
    ['needs_attention', `budget_exhausted: 1300 tokens of 1000 tokens used in the budget of task ${work.task}`],
  )
  assert.is(
    (await ada.act('complete', work.run)).body.code,
    'AUTONOMY_NO_ACTIVE_LEASE',
    'what it did since does not count',
  )

  // The inbox suggests raising the budget first, then recovering the run.
  const helps = async () => (await world.request('GET', `/api/runs/${work.run}/inspect`)).body
  assert.match(JSON.stringify(await helps()), `"svc budget set task ${work.task} --tokens 2600"`)
  await set(world, `task/${work.task}`, { tokens: 2000 })
  assert.match(JSON.stringify(await helps()), `"svc task run recover ${work.run} --reason <text>"`)
  const next = (await world.post(`/api/runs/${work.run}/recover`, { reason: 'it may go on' })).body.run
  const eve = world.agent()
  await held({ task: work.task, run: next.id }, eve)
  assert.is((await budget(world, `task/${work.task}`)).reserved.tokens, 700)
})

test('usage before the claim and after the run does not count for the run', async ({ world }) => {
  const work = await world.queued()
  await set(world, `task/${work.task}`, { tokens: 1000, cost_usd: 1 })
  const ada = world.agent()
  await world.use(ada, { tokens: 5000, cost: 10 })
  await held(work, ada)
  await world.use(ada, { tokens: 5300, cost: 10.25 })
  await ada.act('complete', work.run)
  await world.use(ada, { tokens: 9000, cost: 20 })
  const { spent, reserved } = await budget(world, `task/${work.task}`)
  assert.equal([spent.tokens, spent.cost_usd, reserved.tokens, reserved.cost_usd], [300, 0.25, 0, 0])
})

test('runs of a fan-out share the budget, and the unused share of one is available to the others', async ({
  world,
}) => {
  const { task } = (await world.post('/api/tasks', { title: 'shared', scope: 'global' })).body
  await set(world, `task/${task.id}`, { tokens: 900 })
  const designations = ['a', 'b', 'c'].map(brief => ({ brief, idempotency_key: brief }))
  const { runs } = (await world.post(`/api/tasks/${task.id}/runs/fan-out`, { designations })).body
  const agents = runs.map(() => world.agent())
  for (const [n, agent] of agents.entries()) await held({ task: task.id, run: runs[n].id }, agent)
  const [ada, eve] = agents
  assert.is((await budget(world, `task/${task.id}`)).reserved.tokens, 900)
  await world.use(ada, { tokens: 100 })
  await ada.act('complete', runs[0].id)
  await world.use(eve, { tokens: 450 })
  assert.is((await world.run(runs[1].id, task.id)).status, 'claimed', 'it has what the first one left')
  await world.use(eve, { tokens: 550 })
  assert.is((await world.run(runs[1].id, task.id)).status, 'needs_attention', 'but not what the third one has reserved')
  assert.is((await world.run(runs[2].id, task.id)).status, 'claimed')
})

test('a run is stopped when the time budget of its task is used up', async ({ world }) => {
  const work = await world.queued()
  await set(world, `task/${work.task}`, { wall_seconds: 60 })
  const ada = world.agent()
  await held(work, ada)
  await world.pass(30 * SECOND)
  assert.is((await world.run(work.run, work.task)).status, 'claimed')
  await world.pass(29 * SECOND)
  assert.is((await world.run(work.run, work.task)).status, 'claimed')
  // Long before the next sweep, and without a word of the agent.
  await world.pass(2 * SECOND)
  assert.equal(await stateOf(world, work), STOPPED)
  assert.equal(world.interrupted, [ada.id])
})

test('the time budget ends each run on its own, also after it was raised', async ({ world }) => {
  const [short, long] = [await world.queued(), await world.queued()]
  await set(world, `task/${short.task}`, { wall_seconds: 20 })
  await set(world, `task/${long.task}`, { wall_seconds: 40 })
  const [ada, eve] = [world.agent(), world.agent({ agentName: 'eve' })]
  await held(short, ada)
  await held(long, eve)
  await world.pass(18 * SECOND)
  await set(world, `task/${long.task}`, { wall_seconds: 80 })
  await world.pass(3 * SECOND)
  assert.equal([await stateOf(world, short), world.interrupted], [STOPPED, [ada.id]])
  await world.pass(50 * SECOND)
  assert.is((await world.run(long.run, long.task)).status, 'claimed')
  await world.pass(10 * SECOND)
  assert.equal([await stateOf(world, long), world.interrupted], [STOPPED, [ada.id, eve.id]])
})

test('an agent that stops reporting its usage is stopped at the end of the turn', async ({ world }) => {
  const work = await world.queued()
  await set(world, `task/${work.task}`, { tokens: 1000 })
  const ada = world.agent()
  await held(work, ada)
  await world.use(ada, { tokens: 10 })
  await world.use(ada, { cost: 0.1 })
  await world.endTurn(ada)
  assert.is((await world.run(work.run, work.task)).status, 'claimed')
  await world.endTurn(ada, 'canceled')
  assert.is((await world.run(work.run, work.task)).status, 'claimed', 'it may have had nothing to tell')
  await world.use(ada, { cost: 0.2 })
  await world.endTurn(ada)
  assert.equal(await stateOf(world, work), ['needs_attention', 'budget_exceeded', 'budget_unmeasured'])
})

test('a value that is missing in one usage report is not counted twice in the next', async ({ world }) => {
  const work = await world.queued()
  await set(world, `task/${work.task}`, { tokens: 1000, cost_usd: 5 })
  const ada = world.agent()
  await held(work, ada)
  for (const use of [{ tokens: 100, cost: 1 }, { tokens: 150 }, { tokens: 200, cost: 1.5 }, { cost: 2 }])
    await world.use(ada, use)
  const { spent } = await budget(world, `task/${work.task}`)
  assert.equal([spent.tokens, spent.cost_usd], [200, 2])
})

test('an agent budget is renewed every UTC day', async ({ world }) => {
  await set(world, 'agent/ada', { tokens: 1000 })
  const [first, second] = [await world.queued(), await world.queued()]
  const ada = world.agent()
  await held(first, ada)
  await world.use(ada, { tokens: 2000 })
  assert.equal(await stateOf(world, first), STOPPED)
  const refused = await world.agent().claim()
  assert.equal([refused.status, refused.body.code], [409, 'AUTONOMY_BUDGET_EXHAUSTED'])
  assert.is(
    (await world.agent({ agentName: 'eve' }).claim({ run_id: second.run })).status,
    200,
    'others have their own',
  )
  await world.clock.advance(24 * 3600 * SECOND)
  const third = await world.queued()
  await held(third, world.agent())
})

test('a run whose task budget is exhausted needs attention and does not hold up other runs', async ({ world }) => {
  const work = await world.queued({ priority: 'urgent', max_attempts: 5 })
  await set(world, `task/${work.task}`, { tokens: 10 })
  const ada = world.agent()
  await held(work, ada)
  await world.use(ada, { tokens: 20 })
  const again = (await world.post(`/api/runs/${work.run}/recover`)).body.run
  const named = await world.agent().claim({ run_id: again.id })
  assert.equal([named.status, named.body.code], [409, 'AUTONOMY_BUDGET_EXHAUSTED'])
  const other = await world.queued({ priority: 'low' })
  assert.is((await world.agent().claim()).body.claim.run.id, other.run)
  assert.is((await world.run(again.id, work.task)).status, 'needs_attention')
})

test('an agent that does not report its usage can only have a time budget', async ({ world }) => {
  const work = await world.queued({ priority: 'urgent' })
  await set(world, `task/${work.task}`, { tokens: 1000 })
  const other = await world.queued({ priority: 'low' })
  const mute = () => world.agent({ agentName: 'mute' })
  const named = await mute().claim({ run_id: work.run })
  assert.equal([named.status, named.body.code], [409, 'AUTONOMY_BUDGET_UNMEASURED'])
  assert.is((await mute().claim()).body.claim.run.id, other.run, 'it gets what it can be held to')
  await set(world, `task/${work.task}`, { wall_seconds: 1000 })
  assert.is((await mute().claim()).body.claim.run.id, work.run)
  await set(world, 'agent/mute', { cost_usd: 1 })
  assert.is((await mute().claim()).body.code, 'AUTONOMY_BUDGET_UNMEASURED')
})

test('an agent with unknown reporting is stopped after a turn without a usage report', async ({ world }) => {
  const work = await world.queued()
  await set(world, `task/${work.task}`, { tokens: 1000 })
  const eve = world.agent({ agentName: 'eve' })
  await held(work, eve)
  await world.endTurn(eve)
  assert.equal(await stateOf(world, work), ['needs_attention', 'budget_exceeded', 'budget_unmeasured'])
})

test('setting a budget applies to active runs, and removing it lifts the limit', async ({ world }) => {
  const work = await world.queued()
  const ada = world.agent()
  await held(work, ada)
  await world.use(ada, { tokens: 5000 })
  await set(world, `task/${work.task}`, { tokens: 100 })
  await world.use(ada, { tokens: 5050 })
  assert.is((await world.run(work.run, work.task)).status, 'claimed', 'what it used before does not count')
  assert.is((await world.request('DELETE', `/api/budgets/task/${work.task}`)).status, 204)
  await world.use(ada, { tokens: 9000 })
  assert.is((await world.run(work.run, work.task)).status, 'claimed')
  assert.is((await world.request('GET', `/api/budgets/task/${work.task}`)).body.code, 'task_budget_not_found')
})

test('usage survives a restart of the daemon', async ({ world }) => {
  const work = await world.queued()
  await set(world, `task/${work.task}`, { tokens: 1000 })
  const ada = world.agent()
  await held(work, ada)
  await world.use(ada, { tokens: 600 })
  const after = await world.killed()
  const { spent, reserved } = await budget(after, `task/${work.task}`)
  assert.equal([spent.tokens, reserved.tokens], [600, 0])
  await after.close()
})

test('with a full disk the turn is canceled at once and the run is escalated when writes work again', async () => {
  let isFull = false
  const guard = definePlugin({ name: 'full', version: '1.0.0', requires: { events: Events } }).surface({
    taps: [
      surfaceOf<object>().tap(
        Events,
        events => events.written,
        () => () => {
          if (isFull) throw new Error('no room')
          return undefined
        },
      ),
    ],
  })
  const world = await scene({ plugins: [guard] })
  try {
    const work = await world.queued()
    await set(world, `task/${work.task}`, { tokens: 1000 })
    const ada = world.agent()
    await held(work, ada)
    isFull = true
    await world.use(ada, { tokens: 2000 })
    assert.equal([world.interrupted, (await world.run(work.run, work.task)).status], [[ada.id], 'claimed'])
    isFull = false
    await world.pass(16 * SECOND)
    assert.equal(await stateOf(world, work), STOPPED)
    assert.is((await budget(world, `task/${work.task}`)).spent.tokens, 2000)
  } finally {
    await world.close()
  }
})

test('an invalid budget is refused', async ({ world }) => {
  const { task } = await world.queued()
  const refused: [string, object, string][] = [
    [`task/${task}`, {}, '422 task_budget_invalid'],
    [`task/${task}`, { tokens: 0 }, '422 task_budget_invalid'],
    [`task/${task}`, { cost_usd: -1 }, '422 task_budget_invalid'],
    [`task/${task}`, { wall_seconds: 1e12 }, '422 task_budget_invalid'],
    [`task/${task}`, { tokens: 'many' }, '422 unprocessable'],
    ['task/task_none', { tokens: 1 }, '404 task_not_found'],
    [`agent/${'x'.repeat(201)}`, { tokens: 1 }, '422 task_budget_invalid'],
    ['job/x', { tokens: 1 }, '422 task_budget_invalid'],
  ]
  for (const [of, body, expected] of refused) {
    const { status, body: reply } = await set(world, of, body)
    assert.is(`${status} ${reply.code}`, expected, `${of} ${JSON.stringify(body)}`)
  }
  await set(world, `task/${task}`, { tokens: 5 })
  assert.is((await world.request('GET', '/api/budgets')).body.budgets.length, 1)
  await world.post(`/api/tasks/${task}/cancel`)
  await world.request('DELETE', `/api/tasks/${task}`)
  assert.is((await world.request('GET', '/api/budgets')).body.budgets.length, 0)
})

test.run()
