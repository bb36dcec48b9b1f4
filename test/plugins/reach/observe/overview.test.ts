import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import observe from '../../../../plugins/reach/observe/index.js'
import type { AgentDay } from '../../../../plugins/work/sessions/api.js'
import type { InboxItem } from '../../../../schemas/sessions.js'
import type { Reply } from '../../../harness/kernel.js'
import { type Scene, START, scene } from '../../work/tasks/scene.js'
import { scene as notified } from '../notifications/scene.js'

const test = suite<{ world: Scene }>('overview')
const DAY = 86_400_000

test.before.each(async context => {
  context.world = await scene({ plugins: [observe] })
})
test.after.each(({ world }) => world.close())

const overview = async (world: Scene, query = ''): Promise<Reply> =>
  (await world.request('GET', `/api/observe/overview${query}`)).body.overview

test('finished runs and tasks are counted at once, and still while in the tables', async ({ world }) => {
  const place = { scope: 'workspace', workspace: world.workspace }
  const ada = world.agent()
  const local = await world.queued(place)
  const global = await world.queued()
  await ada.claim({ run_id: local.run, workspace_id: world.workspace })
  await ada.act('complete', local.run)
  await ada.claim({ run_id: global.run })
  await ada.act('fail', global.run, { error: 'no network' })
  const canceled = await world.queued(place)
  await world.post(`/api/tasks/${canceled.task}/cancel`)
  const counts = async (query: string) => {
    const { outcomes, today } = await overview(world, query)
    return [outcomes.completed, outcomes.failed, outcomes.canceled, today.tasks_closed]
  }
  const expected = [await counts(''), await counts(`?workspace=${world.workspace}`)]
  assert.equal(expected, [
    [1, 1, 1, 2],
    [1, 0, 1, 2],
  ])
  await world.pass(5000)
  assert.equal([await counts(''), await counts(`?workspace=${world.workspace}`)], expected)
  const { outcomes } = await overview(world)
  assert.is(outcomes.success_pct, 50)
  assert.is(outcomes.days.length, 14)
  assert.is(outcomes.days.at(-1).date, new Date(START).toISOString().slice(0, 10))
  await world.pass(DAY)
  const later = await overview(world)
  assert.equal([later.today.runs_completed, later.outcomes.days.at(-2).completed], [0, 1])
})

test('an unavailable usage window is refused with 422, an unknown workspace with 404', async ({ world }) => {
  const refused = await world.request('GET', '/api/observe/overview?usage_window=8')
  assert.is(refused.status, 422)
  const missing = await world.request('GET', '/api/observe/overview?workspace=nowhere')
  assert.equal([missing.status, missing.body.code], [404, 'workspace_not_found'])
  for (const window of [7, 30, 90]) {
    const { usage } = await overview(world, `?usage_window=${window}`)
    assert.equal([usage.window_days, usage.days.length, usage.truncated], [window, window, false])
  }
  assert.is((await overview(world)).usage.window_days, 30)
  assert.equal(await overview(world, '?workspace='), await overview(world))
})

/** A task that waits for approval. */
const awaiting = async (world: Scene, title: string, more: object = {}) =>
  (await world.post('/api/tasks', { title, scope: 'global', approval_policy: 'manual', ...more })).body.task.id

test('attention has approvals, failures and tasks of the caller, newest first', async ({ world }) => {
  const ada = world.agent()
  const owner = { kind: 'human', ref: 'operator' }
  const place = { scope: 'workspace', workspace: world.workspace }
  const approval = await awaiting(world, 'deploy', place)
  await world.pass(1000)
  const failed = await world.queued({ title: 'build' })
  await ada.claim({ run_id: failed.run })
  await ada.act('fail', failed.run, { error: 'no space left' })
  await world.pass(1000)
  const escalated = []
  for (const who of [owner, { kind: 'human', ref: 'bob' }]) {
    const { run, task } = await world.queued({ title: `of ${who.ref}` })
    const agent = world.agent()
    await agent.claim({ run_id: run })
    await world.stop(agent, 'crashed')
    escalated.push(task)
    assert.is((await world.request('PATCH', `/api/tasks/${task}`, { owner: who })).status, 200)
  }
  const { attention } = await overview(world)
  assert.equal(attention.by_kind, { approval: 1, failure: 1, needs_input: 1 })
  assert.is(attention.total, 3)
  const seen = attention.items.map((item: Reply) => [item.kind, item.task_id, item.actions])
  assert.equal(seen, [
    ['needs_input', escalated[0], ['recover', 'open']],
    ['failure', failed.task, ['retry', 'open']],
    ['approval', approval, ['approve', 'reject']],
  ])
  assert.equal([attention.items[1].run_id, attention.items[1].detail], [failed.run, 'no space left'])
  const local = (await overview(world, `?workspace=${world.workspace}`)).attention
  assert.equal([local.total, local.items.map((item: Reply) => item.title)], [1, ['deploy']])
})

test('attention also has questions, reviews, providers, bridges and messages', async () => {
  const inbox: InboxItem[] = []
  const world = await notified({ inbox, plugins: [observe] })
  inbox.push(
    question(world, { interaction_id: 'per_1', kind: 'execute', title: 'Run the\ntests' }),
    question(world, { interaction_id: 'clq_1', kind: 'question', title: 'Which colour?' }),
  )
  const failed = await world.queued({ title: 'build' })
  await awaiting(world, 'deploy')
  await world.emitAll([
    // Its task is in the inbox of tasks, which decides whether it is listed.
    { name: 'task.run_failed', payload: { task_id: failed.task, error: 'exit 1' } },
    { name: 'provider.auth_required', payload: { provider: 'anthropic', message: 'log in' }, scope: world.workspace },
    { name: 'bridge.error', payload: { bridge_id: 'team', status: 'error', message: 'no route' } },
    { name: 'bridge.delivery_failed', payload: { bridge_id: 'team', delivery_id: 'dlv_1', reason: 'expired' } },
    { name: 'agent.notice', payload: { session_id: 'ses_1', agent_name: 'ada', title: 'Done' } },
  ])
  const { attention } = await overview(world as never)
  assert.equal(attention.by_kind, { approval: 2, failure: 3, needs_input: 1 })
  assert.is(attention.total, 6)
  const found = new Map(attention.items.map((item: Reply) => [item.title, item]))
  assert.equal([...found.keys()].sort(), [
    'Bridge failed: team',
    'Message was not delivered: team',
    'Provider needs a login: anthropic',
    'Run the tests',
    'Which colour?',
    'deploy',
  ])
  const of = (title: string) => found.get(title) as Reply
  assert.equal(
    [of('Run the tests').kind, of('Run the tests').actions, of('Run the tests').session_id],
    ['approval', ['approve', 'deny'], 'ses_1'],
  )
  assert.is(of('Run the tests').command, 'svc session approve ses_1 --request per_1')
  assert.is(of('Which colour?').kind, 'needs_input')
  assert.equal(of('Message was not delivered: team').actions, ['resend', 'discard'])
  const local = (await overview(world as never, `?workspace=${world.workspace}`)).attention
  assert.is(local.total, 3, 'of one workspace')
  const { snapshot } = (await world.request('GET', '/api/notifications/attention')).body
  await world.post('/api/notifications/attention/acknowledge', { snapshot, id: 'bridge:team' })
  assert.is((await overview(world as never)).attention.total, 5, 'what was acknowledged is left out')
  await world.close()
})

const question = ({ workspace }: { workspace: string }, more: object): InboxItem => ({
  ...{ session_id: 'ses_1', agent_name: 'ada', workspace_id: workspace, workspace_path: '/w', turn_id: 't' },
  ...{ interaction_id: 'per_1', kind: 'execute', title: 'Run', answer: 'svc session approve ses_1 --request per_1' },
  ...{ created_at: new Date(START).toISOString(), expires_at: new Date(START + DAY).toISOString(), ...more },
})

test('attention lists the 12 newest items and counts all', async ({ world }) => {
  const ids: string[] = []
  for (let n = 0; n < 15; n++) {
    ids.push(await awaiting(world, `task ${n}`))
    await world.pass(1000)
  }
  await world.post(`/api/tasks/${ids[14]}/triage/dismiss`)
  const { attention } = await overview(world)
  assert.is(attention.total, 14)
  assert.equal(
    attention.items.map((item: Reply) => item.task_id),
    ids.slice(2, 14).toReversed(),
  )
})

test('an empty overview is empty, and live work without activity is stale', async () => {
  const world = await scene({ plugins: [observe] })
  const { freshness, pulse, usage, network } = await overview(world, `?workspace=${world.workspace}`)
  assert.equal([freshness.status, freshness.stale, pulse.longest_session], ['current', false, null])
  assert.equal([usage.total_tokens, usage.estimated_cost, usage.cost_status], [0, null, 'unknown'])
  assert.equal(network, { messages_today: 0 })
  const ada = world.agent()
  const { run } = await world.queued()
  await ada.claim({ run_id: run, lease_seconds: 3600 })
  const live = (await overview(world)).freshness
  assert.equal([live.status, live.has_live_work], ['current', true])
  await world.clock.advance(121_000)
  const stale = (await overview(world)).freshness
  assert.equal([stale.status, stale.stale, stale.age_ms], ['stale', true, 121_000])
  await world.close()
})

test('usage has the days of its window, the agents of 30 days, and the coverage of costs', async () => {
  const day = (ago: number) => new Date(START - ago * DAY).toISOString().slice(0, 10)
  const row = { turns: 1, told: 1, priced: 1, currency: 'USD' }
  let rows: readonly AgentDay[] = [
    { ...row, day: day(40), agent_name: 'old', tokens: 1000, cost: 4 },
    { ...row, day: day(20), agent_name: 'ada', tokens: 100, cost: 0.5 },
    { ...row, day: day(3), agent_name: 'bob', tokens: 300, cost: 1 },
    ...['c', 'd', 'e'].map((agent_name, n) => ({ ...row, day: day(0), agent_name, tokens: 50 - n, cost: 0.25 })),
  ]
  const requests: unknown[] = []
  const past = {
    usageDays: 30,
    usage: (from: string, to: string, workspace?: string) => {
      requests.push(workspace)
      return rows.filter(({ day: of }) => of >= from && of <= to)
    },
    longest: () => ({ id: 'ses_1', agentName: 'ada', from: START - 90_400, to: START }),
  }
  const world = await scene({ plugins: [observe], past })
  const week = (await overview(world, `?usage_window=7&workspace=${world.workspace}`)).usage
  assert.equal([...new Set(requests)], [world.workspace])
  assert.equal([week.total_tokens, week.estimated_cost, week.cost_status], [447, 1.75, 'actual'])
  assert.equal(week.days.at(-4), { date: day(3), tokens: 300 })
  const shares = week.agent_share.map((share: Reply) => [share.agent_name, share.tokens])
  assert.equal(shares, [
    ['bob', 300],
    ['ada', 100],
    ['c', 50],
    ['d', 49],
  ])
  assert.is(week.agent_share[0].fraction, 300 / 547)
  const month = await overview(world)
  assert.equal([month.usage.total_tokens, month.usage.truncated], [547, false])
  assert.equal(month.pulse.longest_session, {
    ...{ session_id: 'ses_1', agent_name: 'ada', date: day(0), duration_seconds: 90 },
  })
  const quarter = (await overview(world, '?usage_window=90')).usage
  assert.equal([quarter.total_tokens, quarter.truncated, quarter.retention_days], [1547, true, 30])
  rows = [...rows, { ...row, day: day(0), agent_name: 'f', tokens: 10, cost: null, currency: null, priced: 0 }]
  assert.is((await overview(world)).usage.cost_status, 'estimated')
  await world.close()
})

test.run()
