import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Reply } from '../../../harness/kernel.js'
import { type Scene, scene } from './scene.js'

const MINUTE = 60_000
const test = suite<{ world: Scene }>('task reports')

test.before.each(async context => {
  context.world = await scene()
})
test.after.each(({ world }) => world.close())

const get = async (world: Scene, url: string): Promise<Reply> => (await world.request('GET', url)).body

test('the board shows the oldest queued run, and nothing for an empty queue', async ({ world }) => {
  const depth = async () => (await get(world, '/api/observe/tasks/dashboard')).dashboard.queue.depth
  assert.equal(await depth(), [])
  await world.queued()
  assert.is((await depth())[0].oldest_queued_at, new Date(world.clock.now()).toISOString())
})

test('runs and tasks can be filtered by the requested network channel', async ({ world }) => {
  const live = { mode: 'live', channel_strategy: 'named', channel_id: 'reviews' }
  const { task, run } = await world.queued({ network_participation: live })
  await world.queued()
  const runs = async (channel: string) =>
    (await get(world, `/api/tasks/${task}/runs?participation_channel=${channel}`)).runs.map((one: Reply) => one.id)
  assert.equal([await runs('reviews'), await runs('other')], [[run], []])
  const { tasks } = await get(world, '/api/tasks?participation_channel=reviews')
  assert.equal(
    tasks.map((one: Reply) => one.id),
    [task],
  )
  const board = await get(world, '/api/observe/tasks/dashboard?participation_channel=reviews')
  assert.is(board.dashboard.totals.tasks_total, 1)
})

test('the status counts repeated requests, forced stops and unresolved channels', async ({ world }) => {
  const counts = async () => {
    const { tasks } = await get(world, '/api/status')
    return [tasks.duplicate_ingress_since_start, tasks.forced_stops_since_start, tasks.channel_mismatch_since_start]
  }
  assert.equal(await counts(), [0, 0, 0])
  const { task, run } = await world.queued({
    network_participation: { mode: 'live', channel_strategy: 'named', channel_id: 'reviews' },
  })
  await world.post(`/api/tasks/${task}/start`)
  await world.post(`/api/runs/${run}/fail`, { reason: 'not needed' })
  assert.equal(await counts(), [1, 1, 1])
})

test('a claim without a workspace only matches global tasks', async ({ world }) => {
  const mine = await world.queued({ scope: 'workspace', workspace: world.workspace, priority: 'urgent' })
  assert.is((await world.agent().claim()).status, 204)
  assert.is((await world.agent().claim({ run_id: mine.run })).status, 204)
  const both = await world.agent().claim({ scope: 'global', workspace_id: world.workspace })
  assert.equal([both.status, both.body.code], [422, 'task_invalid'])
  const global = await world.queued()
  const exact = await world.agent().claim({ run_id: global.run, workspace_id: world.workspace })
  assert.is(exact.body.claim.run.id, global.run)
  const own = await world.agent().claim({ scope: 'workspace' })
  assert.is(own.body.claim.run.id, mine.run)
})

test('doctor and inspection report the same findings for a run', async context => {
  await context.world.close()
  // No session can be started here; how many fail in ten minutes depends on the machine, and they must not decide.
  const world = await scene({ config: { task: { orchestration: { spawn_failure_limit: 0 } } } })
  context.world = world
  const itemsOf = async (run: string) => {
    const { items } = await get(world, '/api/doctor?only=tasks')
    const { diagnostics } = (await get(world, `/api/runs/${run}/inspect`)).inspect
    const codes = items.filter((item: Reply) => item.evidence.run_id === run).map((item: Reply) => item.code)
    assert.equal(
      diagnostics.map((item: Reply) => item.code),
      codes,
      'both say the same',
    )
    return codes
  }
  const { run } = await world.queued()
  assert.equal(await itemsOf(run), [])
  await world.clock.advance(10 * MINUTE)
  assert.equal(await itemsOf(run), ['task_run_stranded'])
  const ada = world.agent()
  await ada.claim({ lease_seconds: 3600 })
  assert.equal(await itemsOf(run), [])
  await world.clock.advance(5 * MINUTE)
  assert.equal(await itemsOf(run), ['task_run_stuck'])
  await world.stop(ada, 'crashed')
  assert.equal(await itemsOf(run), ['task_run_crashed'])
  const scheduler = async () =>
    (await get(world, '/api/doctor?only=tasks')).items.find((item: Reply) => item.id === 'task_scheduler').code
  assert.is(await scheduler(), 'scheduler_ready')
  await world.post('/api/scheduler/pause', { reason: 'later' })
  assert.is(await scheduler(), 'scheduler_paused')
})

test.run()
