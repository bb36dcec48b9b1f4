import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { operator } from '../../../../kernel/plugin.js'
import { type Scene, scene } from './scene.js'

const MINUTE = 60_000
const test = suite<{ world: Scene }>('kept runs')

test.before.each(async context => {
  context.world = await scene()
})
test.after.each(({ world }) => world.close())

const code = (work: Promise<unknown>) =>
  work.then(
    () => 'none',
    (error: { readonly code?: string }) => error.code,
  )
const bob = { name: 'bob', key: 'offer:1' }

test('a kept run is held, extended and completed by a remote worker, and no session gets it', async ({ world }) => {
  const { task, run } = await world.queued()
  const kept = await world.api.kept.keep(operator, task, 'network')
  assert.equal([kept.run.id, kept.title], [run, 'work'])
  const ada = world.agent()
  assert.is((await ada.claim()).status, 204)
  assert.is((await ada.claim({ run_id: run })).status, 204)
  const held = await world.api.kept.claim(run, bob, MINUTE)
  assert.equal([held.status, held.claimed_by], ['running', { kind: 'network_peer', ref: 'bob' }])
  assert.is((await world.task(task)).task.status, 'in_progress')
  assert.equal(await world.api.kept.claim(run, bob, MINUTE), held, 'the same claim')
  assert.is(await code(world.api.kept.claim(run, { name: 'eve', key: 'offer:9' }, MINUTE)), 'task_run_conflict')
  await world.clock.advance(MINUTE - 1)
  await world.api.kept.extend(run, bob, MINUTE)
  await world.clock.advance(MINUTE - 1)
  assert.is((await ada.act('complete', run)).body.code, 'AUTONOMY_NO_ACTIVE_LEASE')
  const done = await world.api.kept.complete(run, bob, { summary: 'done' })
  assert.equal([done.status, done.result], ['completed', { summary: 'done' }])
  assert.equal(await world.api.kept.complete(run, bob, { summary: 'again' }), done, 'it is completed once')
  assert.is((await world.task(task)).task.status, 'completed')
  assert.is(await code(world.api.kept.keep(operator, task, 'network')), 'task_conflict')
})

test('a task with a coordinator is given away as a whole', async ({ world }) => {
  const { task } = (await world.post('/api/tasks', { title: 'work', scope: 'global' })).body
  await world.request('PUT', `/api/tasks/${task.id}/execution-profile`, { coordinator: { mode: 'guided' } })
  const { run } = (await world.post(`/api/tasks/${task.id}/start`)).body
  assert.is((await world.api.kept.keep(operator, task.id, 'network')).run.id, run.id)
  await world.api.kept.claim(run.id, bob, MINUTE)
  await world.api.kept.complete(run.id, bob, {})
  assert.is((await world.task(task.id)).task.status, 'completed')
})

test('a task whose profile requires a result is not completed without one', async ({ world }) => {
  const { task, run } = await world.queued()
  await world.request('PUT', `/api/tasks/${task}/execution-profile`, { runtime: { mode: 'evidence' } })
  await world.api.kept.keep(operator, task, 'network')
  await world.api.kept.claim(run, bob, MINUTE)
  for (const empty of [undefined, null])
    assert.is(await code(world.api.kept.complete(run, bob, empty)), 'task_result_required')
  assert.is((await world.api.kept.complete(run, bob, 'a text')).result, 'a text')
})

test('an expired lease fences its holder; the run stays kept until released', async ({ world }) => {
  const { task, run } = await world.queued()
  await world.api.kept.keep(operator, task, 'network')
  await world.api.kept.claim(run, bob, MINUTE)
  await world.clock.advance(MINUTE)
  assert.is(await code(world.api.kept.complete(run, bob, {})), 'AUTONOMY_LEASE_EXPIRED')
  const back = await world.api.kept.look(run)
  assert.equal([back?.status, back?.recovery_count], ['queued', 1])
  assert.is(await code(world.api.kept.extend(run, bob, MINUTE)), 'AUTONOMY_LEASE_EXPIRED')
  const ada = world.agent()
  await world.kernel.inject({ method: 'PATCH', url: `/api/tasks/${task}`, body: { priority: 'high' } })
  assert.is((await ada.claim()).status, 204, 'a change of the task does not free it')
  await world.api.kept.claim(run, { name: 'eve', key: 'offer:2' }, MINUTE)
  assert.is(await code(world.api.kept.complete(run, bob, {})), 'AUTONOMY_LEASE_EXPIRED')
  await world.api.kept.free(operator, task, 'withdrawn')
  assert.is(await code(world.api.kept.complete(run, { name: 'eve', key: 'offer:2' }, {})), 'AUTONOMY_LEASE_EXPIRED')
  assert.is((await ada.claim()).body.claim.run.id, run)
  assert.is(await code(world.api.kept.keep(operator, task, 'network')), 'task_run_open')
})

test('a kept run does not starve, and survives a kill of the daemon', async ({ world }) => {
  const { task, run } = await world.queued()
  await world.api.kept.keep(operator, task, 'network')
  await world.api.kept.claim(run, bob, 60 * MINUTE)
  const next = await world.killed()
  assert.is((await next.api.kept.extend(run, bob, 60 * MINUTE)).status, 'running')
  await next.api.kept.fail(run, bob, 'cannot be done')
  const { task: other, run: waiting } = await next.queued()
  await next.api.kept.keep(operator, other, 'network')
  for (let minutes = 0; minutes < 13; minutes++) await next.pass(MINUTE)
  assert.equal([(await next.run(waiting, other)).status, next.created.length], ['queued', 0])
  await next.close()
})

test('doctor reports nothing for a run that waits for a remote worker or is held by one', async ({ world }) => {
  const findings = async () => {
    const { items } = (await world.request('GET', '/api/doctor?only=tasks')).body
    return items
      .filter(({ id }: { id: string }) => id.startsWith('task_run:'))
      .map(({ code }: { code: string }) => code)
  }
  const { task, run } = await world.queued()
  await world.api.kept.keep(operator, task, 'network')
  await world.clock.advance(11 * MINUTE)
  assert.equal(await findings(), [])
  await world.api.kept.claim(run, bob, 60 * MINUTE)
  assert.equal(await findings(), [])
  await world.clock.advance(59 * MINUTE)
  assert.equal(await findings(), [])
})

test('a task with a budget cannot be kept from sessions', async ({ world }) => {
  const { task } = await world.queued()
  const set = await world.kernel.inject({ method: 'PUT', url: `/api/budgets/task/${task}`, body: { wall_seconds: 60 } })
  assert.is(set.status, 200, set.body)
  assert.is(await code(world.api.kept.keep(operator, task, 'network')), 'task_conflict')
})

test.run()
