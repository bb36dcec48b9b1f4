import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type Scene, scene } from './scene.js'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const LATE_MS = 5000
/** Interval of the plugin `disk`. */
const DISK_MS = 10_000
const test = suite<{ world: Scene }>('deadlines of tasks')

test.before.each(async context => {
  context.world = await scene()
})
test.after.each(({ world }) => world.close())

/** The delays of the timers that are set while the time passes. */
async function timersIn(world: Scene, ms: number): Promise<number[]> {
  const { clock } = world
  const delays: number[] = []
  const timeout = clock.timeout.bind(clock)
  clock.timeout = (delay, fn) => {
    delays.push(delay)
    return timeout(delay, fn)
  }
  await world.pass(ms)
  Reflect.deleteProperty(clock, 'timeout')
  return delays
}

test('without deadlines and waiting runs, tasks set no timer', async ({ world }) => {
  await world.pass(MINUTE)
  const short = (await timersIn(world, HOUR)).filter(delay => delay < MINUTE && delay !== DISK_MS)
  assert.equal(short, [])
})

test('the run of an expired lease is queued again a few seconds after the expiry', async ({ world }) => {
  const { task, run } = await world.queued()
  const ada = world.agent()
  await ada.claim({ lease_seconds: 1800 })
  await world.pass(30 * MINUTE)
  assert.is((await ada.act('complete', run)).body.code, 'AUTONOMY_LEASE_EXPIRED')
  assert.is((await world.run(run, task)).status, 'claimed')
  await world.pass(LATE_MS)
  assert.equal([(await world.run(run, task)).status, (await world.run(run, task)).recovery_count], ['queued', 1])
})

test('a heartbeat with a shorter lease brings its end forward', async ({ world }) => {
  const { task, run } = await world.queued()
  const ada = world.agent()
  await ada.claim({ lease_seconds: 3600 })
  await ada.act('heartbeat', run, { lease_seconds: 60 })
  await world.pass(MINUTE + LATE_MS)
  assert.is((await world.run(run, task)).status, 'queued')
})

test('a transient block and a review end at their deadlines', async ({ world }) => {
  const blocked = await world.queued()
  const until = new Date(world.clock.now() + 10 * MINUTE).toISOString()
  await world.post(`/api/tasks/${blocked.task}/blocks`, { kind: 'transient', reason: 'rate limit', expires_at: until })
  const { task, run } = await world.queued()
  const ada = world.agent()
  await ada.claim({ run_id: run })
  await ada.act('complete', run)
  const deadline = new Date(world.clock.now() + 20 * MINUTE).toISOString()
  const { review } = (
    await world.post(`/api/task-runs/${run}/reviews`, { run_id: run, task_id: task, deadline_at: deadline })
  ).body
  await world.pass(10 * MINUTE)
  assert.is((await world.task(blocked.task)).task.status, 'ready')
  await world.pass(10 * MINUTE)
  const { reviews } = (await world.request('GET', `/api/tasks/${task}/reviews`)).body
  assert.equal([reviews[0].review_id, reviews[0].outcome], [review.review_id, 'timeout'])
})

test('a backward clock jump does not extend a lease beyond its duration', async ({ world }) => {
  const { task, run } = await world.queued()
  await world.agent().claim({ lease_seconds: 600 })
  await world.pass(MINUTE)
  world.clock.jump(-HOUR)
  await world.pass(2 * MINUTE)
  await world.pass(10 * MINUTE + LATE_MS)
  assert.is((await world.run(run, task)).status, 'queued')
})

test.run()
