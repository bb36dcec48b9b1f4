import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Events } from '../../../../plugins/platform/events/api.js'
import { probe } from '../../../../testing/traces.js'
import { type Scene, scene } from './scene.js'

const LOOK_MS = 5250
const look = probe({ events: Events })
const test = suite<{ world: Scene }>('scheduler drain')

test.before.each(async context => {
  context.world = await scene({
    plugins: [look.plugin],
    config: { task: { orchestration: { spawn_failure_limit: 0 } } },
  })
})
test.after.each(({ world }) => world.close())

const eventsOf = async (): Promise<unknown[]> =>
  (await look.kernel().needs.events.list({ limit: 1000 }))
    .filter(({ name }) => name.startsWith('scheduler.'))
    .map(({ name, payload }) => [name, (payload as { remaining_claims?: number }).remaining_claims])

test('a drain waits for active runs to end and starts nothing meanwhile', async ({ world }) => {
  const held = await world.queued()
  const ada = world.agent()
  await ada.claim({ lease_seconds: 3600 })
  const waiting = await world.queued({ scope: 'workspace', workspace: world.workspace })
  const drain = world.post('/api/scheduler/drain', { reason: 'update', timeout_seconds: 600 })
  let isOver = false
  void drain.then(() => {
    isOver = true
  })
  for (let looks = 0; looks < 50 && (await eventsOf()).length < 2; looks++) await world.pass(10)
  await world.request('PUT', `/api/tasks/${waiting.task}/execution-profile`, { worktree: { mode: 'none' } })
  for (let looks = 0; looks < 5; looks++) await world.pass(LOOK_MS)
  assert.equal([isOver, world.created.length], [false, 0])
  assert.is((await world.agent().claim({ scope: 'workspace' })).status, 204)
  assert.is((await ada.act('heartbeat', held.run)).status, 200, 'whoever holds a run goes on')
  assert.is((await ada.act('complete', held.run)).status, 200)
  for (let looks = 0; looks < 50 && !isOver; looks++) await world.pass(500)
  const { status, body } = await drain
  assert.equal([status, body.completed, body.remaining_claims, body.timed_out], [200, true, 0, false])
  assert.equal([body.scheduler.paused, body.scheduler.paused_reason], [true, 'update'])
  assert.equal(await eventsOf(), [
    ['scheduler.paused', undefined],
    ['scheduler.drain_started', 1],
    ['scheduler.drain_completed', 0],
  ])
  assert.is(world.created.length, 0, 'it stays paused')
  await world.post('/api/scheduler/resume')
  for (let looks = 0; looks < 20 && world.created.length === 0; looks++) await world.pass(LOOK_MS)
  assert.ok(world.created.length > 0, 'the run that waited gets its session')
})

test('a drain that times out reports the remaining claims and is not completed', async ({ world }) => {
  await world.queued()
  await world.agent().claim({ lease_seconds: 3600 })
  const drain = world.post('/api/scheduler/drain', { timeout_seconds: 20 })
  let isOver = false
  void drain.then(() => {
    isOver = true
  })
  for (let looks = 0; looks < 200 && !isOver; looks++) await world.pass(500)
  const { body } = await drain
  assert.equal([body.completed, body.remaining_claims, body.timed_out, body.scheduler.paused], [false, 1, true, true])
  assert.not((await eventsOf()).some(entry => String(entry).startsWith('scheduler.drain_completed')))
})

test.run()
