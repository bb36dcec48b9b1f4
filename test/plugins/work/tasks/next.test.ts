import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, surfaceOf } from '../../../../kernel/plugin.js'
import { type ClaimWish, Tasks } from '../../../../plugins/work/tasks/api.js'
import { type Agent, type Scene, scene } from './scene.js'

let change: (wish: ClaimWish) => ClaimWish | undefined = () => undefined
const asker = definePlugin({ name: 'asker', version: '1.0.0', requires: { tasks: Tasks } }).surface({
  taps: [
    surfaceOf<object>().tap(
      Tasks,
      tasks => tasks.preClaim,
      () => wish => change(wish),
    ),
  ],
})
const test = suite<{ world: Scene }>('combined claim requests')
test.before.each(async context => {
  change = () => undefined
  context.world = await scene({ plugins: [asker] })
})
test.after.each(({ world }) => world.close())

const events = async (world: Scene, task: string): Promise<string[]> =>
  (await world.request('GET', `/api/tasks/${task}/timeline`)).body.timeline.map(
    ({ event_type: type }: { event_type: string }) => type,
  )
const complete = async (agent: Agent, run: string, next?: object) => {
  const { status, body } = await agent.act('complete', run, next && { next })
  assert.is(status, 200, JSON.stringify(body))
  return body
}

test('a claim with start is running at once, and a repetition changes nothing', async ({ world }) => {
  const { task, run } = await world.queued()
  const ada = world.agent()
  const wanted = { start: true, idempotency_key: 'k' }
  const { claim } = (await ada.claim(wanted)).body
  assert.equal([claim.run.id, claim.run.status, claim.lease.status], [run, 'running', 'running'])
  assert.is((await world.task(task)).task.status, 'in_progress')
  assert.equal((await ada.claim(wanted)).body.claim.lease, claim.lease)
  const before = await events(world, task)
  for (const type of ['task.run_claimed', 'task.run_started'])
    assert.is(before.filter(each => each === type).length, 1, type)
  await complete(ada, run)
})

test('a completion claims the next run; without a run it commits nevertheless', async ({ world }) => {
  const [first, second] = [await world.queued(), await world.queued()]
  const ada = world.agent()
  await ada.claim({ run_id: first.run })
  const done = await complete(ada, first.run, { start: true, lease_seconds: 600 })
  assert.equal([done.lease.run_id, done.lease.status], [first.run, 'completed'])
  assert.equal([done.next.run.id, done.next.run.status], [second.run, 'running'])
  assert.is(Date.parse(done.next.lease.lease_until) - world.clock.now(), 600_000)
  const last = await complete(ada, second.run, {})
  assert.equal([last.lease.status, last.next, 'next_refused' in last], ['completed', null, false])
  const third = await world.queued()
  await ada.claim({ run_id: third.run })
  assert.not('next' in (await complete(ada, third.run)), 'nothing is said of what was not asked for')
})

test('a repeated completion with its key gets the same reply, with or without the next lease', async ({ world }) => {
  const [first, second] = [await world.queued(), await world.queued()]
  const ada = world.agent()
  await ada.claim({ run_id: first.run })
  const next = { idempotency_key: 'after-first' }
  const reply = await complete(ada, first.run, next)
  assert.is(reply.next.run.id, second.run)
  assert.equal(await complete(ada, first.run, next), reply)
  const none = await complete(ada, second.run, { idempotency_key: 'after-second' })
  assert.is(none.next, null)
  const third = await world.queued()
  assert.equal(await complete(ada, second.run, { idempotency_key: 'after-second' }), none, 'the same, though one waits')
  assert.is((await world.told(third.run))?.status, 'queued')
  const other = await ada.act('complete', second.run, { next: { idempotency_key: 'another' } })
  assert.equal([other.status, other.body.code], [409, 'AUTONOMY_NO_ACTIVE_LEASE'])
  const eve = world.agent()
  const foreign = await eve.act('complete', second.run, { next: { idempotency_key: 'after-second' } })
  assert.equal([foreign.status, foreign.body.code], [409, 'AUTONOMY_FOREIGN_RUN'])
})

test('an invalid next claim changes nothing; a refused one leaves the run completed, with the reason', async ({
  world,
}) => {
  const { task, run } = await world.queued()
  const ada = world.agent()
  await ada.claim({ run_id: run })
  for (const next of [{ lease_seconds: -1 }, { scope: 'nowhere' }, { workspace_id: 'ws_other' }, { more: 1 }]) {
    const { status } = await ada.act('complete', run, { next })
    assert.ok(status >= 400 && status < 500, `${JSON.stringify(next)}: ${status}`)
    assert.is((await world.task(task)).task.status, 'ready', JSON.stringify(next))
  }
  await world.queued()
  change = wish => ({ ...wish, deny: 'not now' })
  const { lease, next, next_refused } = await complete(ada, run, {})
  assert.equal(
    [lease.status, next, next_refused],
    ['completed', null, { code: 'task_claim_denied', message: 'not now' }],
  )
})

test.run()
