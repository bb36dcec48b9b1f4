import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type Scene, scene } from './scene.js'

const MINUTE = 60_000
const test = suite<{ world: Scene }>('leases of runs')

test.before.each(async context => {
  context.world = await scene()
})
test.after.each(({ world }) => world.close())

test('a session claims a run, renews its lease and completes it', async ({ world }) => {
  const { task, run } = await world.queued()
  const ada = world.agent()
  const claimed = await ada.claim()
  assert.is(claimed.status, 200, JSON.stringify(claimed.body))
  const { lease } = claimed.body.claim
  assert.equal([lease.run_id, lease.session_id, lease.status], [run, ada.id, 'claimed'])
  assert.match(lease.claim_token_hash, /^sha256:[0-9a-f]{64}$/)
  assert.not.match(JSON.stringify(claimed.body), /tclaim_/)
  assert.is((await world.task(task)).task.status, 'ready')

  await world.clock.advance(4 * MINUTE)
  const extended = (await ada.act('heartbeat', run, { lease_seconds: 600 })).body.lease
  assert.is(Date.parse(extended.lease_until) - world.clock.now(), 10 * MINUTE)
  assert.is((await ada.act('start', run)).body.run.status, 'running')
  assert.is((await world.task(task)).task.status, 'in_progress')
  const ended = await ada.act('complete', run, { result: { branch: 'work' } })
  assert.equal([ended.status, ended.body.lease.status], [200, 'completed'])
  const detail = await world.task(task)
  assert.equal([detail.task.status, detail.runs[0].result], ['completed', { branch: 'work' }])
  assert.ok(detail.task.closed_at)
})

test('a claim without a queued run returns 204', async ({ world }) => {
  assert.is((await world.agent().claim()).status, 204)
  await world.post('/api/tasks', { title: 'without a run', scope: 'global' })
  assert.is((await world.agent().claim()).status, 204)
})

test('a run has one holder and a session holds one run', async ({ world }) => {
  const { run } = await world.queued()
  await world.queued()
  const [ada, eve] = [world.agent(), world.agent()]
  await ada.claim({ run_id: run })
  const second = await ada.claim()
  assert.equal([second.status, second.body.code], [409, 'AUTONOMY_LEASE_ALREADY_HELD'])
  assert.is.not((await eve.claim()).body.claim.run.id, run)
  for (const what of ['heartbeat', 'complete', 'release', 'start']) {
    const foreign = await eve.act(what, run)
    assert.equal([foreign.status, foreign.body.code], [409, 'AUTONOMY_FOREIGN_RUN'], what)
  }
})

test('a repeated claim with the same key returns the same lease', async ({ world }) => {
  await world.queued()
  const ada = world.agent()
  const first = (await ada.claim({ idempotency_key: 'k' })).body.claim
  assert.equal((await ada.claim({ idempotency_key: 'k' })).body.claim.lease, first.lease)
})

test('a late holder is refused before and after its run is recovered', async ({ world }) => {
  const { run } = await world.queued()
  const ada = world.agent()
  await ada.claim({ lease_seconds: 1 })
  await world.clock.advance(1000)
  const late = await ada.act('complete', run)
  assert.equal([late.status, late.body.code], [409, 'AUTONOMY_LEASE_EXPIRED'])
  await world.pass(15_000)
  const later = await ada.act('complete', run)
  assert.equal([later.status, later.body.code], [409, 'AUTONOMY_NO_ACTIVE_LEASE'])
})

test('a run with an expired lease is requeued until its attempts are exhausted, then needs attention', async ({
  world,
}) => {
  const { task, run } = await world.queued({ max_attempts: 2 })
  const ada = world.agent()
  await ada.claim()
  await world.pass(5 * MINUTE + 15_000)
  const again = await world.run(run, task)
  assert.equal([again.status, again.recovery_count, again.session_id], ['queued', 1, undefined])
  await ada.claim()
  await world.pass(5 * MINUTE + 15_000)
  const stuck = await world.run(run, task)
  assert.equal([stuck.status, stuck.error], ['needs_attention', 'lease_recovery_exhausted'])
  const { task: row } = await world.task(task)
  assert.equal(
    [row.status, row.needs_attention, row.needs_attention_reason],
    ['needs_attention', true, 'lease_recovery_exhausted'],
  )
  assert.is((await world.agent().claim()).status, 204)

  const recovered = await world.post(`/api/runs/${run}/recover`, { reason: 'looked at it' })
  assert.equal([recovered.status, recovered.body.previous_run.status], [201, 'failed'])
  assert.equal([recovered.body.run.previous_run_id, recovered.body.run.attempt], [run, 2])
  assert.is((await world.task(task)).task.status, 'ready')
  assert.is((await world.agent().claim()).body.claim.run.id, recovered.body.run.id)
  assert.is((await world.post(`/api/runs/${run}/recover`)).status, 409)
})

test('stopping a session requeues its run, and a crash of its process makes the run need attention', async ({
  world,
}) => {
  const first = await world.queued()
  const ada = world.agent()
  await ada.claim({ run_id: first.run })
  await world.stop(ada)
  assert.is((await world.run(first.run, first.task)).status, 'queued')
  const eve = world.agent()
  await eve.claim({ run_id: first.run })
  await world.stop(eve, 'crashed')
  assert.is((await world.run(first.run, first.task)).status, 'needs_attention')
  const gone = await eve.claim()
  assert.equal([gone.status, gone.body.code], [409, 'AUTONOMY_SESSION_REQUIRED'])
})

test('after a daemon kill, claimed runs are requeued, started runs fail, and runs of live sessions continue', async ({
  world,
}) => {
  const [claimed, begun, kept] = [await world.queued(), await world.queued(), await world.queued()]
  const [ada, eve, bob] = [world.agent(), world.agent(), world.agent()]
  await ada.claim({ run_id: claimed.run })
  await eve.claim({ run_id: begun.run })
  await eve.act('start', begun.run)
  await bob.claim({ run_id: kept.run })
  const after = await world.killed([bob])
  const statuses = []
  for (const { run, task } of [claimed, begun, kept]) statuses.push((await after.run(run, task)).status)
  assert.equal(statuses, ['queued', 'failed', 'running'])
  assert.is((await after.run(begun.run, begun.task)).failure_kind, 'daemon_restarted')
  const again = after.agent()
  assert.is((await again.claim({ run_id: claimed.run })).status, 200)
  await after.close()
})

test('an operator without session headers cannot claim', async ({ world }) => {
  const reply = await world.post('/api/agent/tasks/claim-next')
  assert.equal([reply.status, reply.body.code], [401, 'identity_required'])
  const { run } = await world.queued()
  const ada = world.agent()
  assert.is((await ada.act('complete', run)).body.code, 'AUTONOMY_NO_ACTIVE_LEASE')
  assert.is((await ada.act('complete', 'trun_none')).body.code, 'task_run_not_found')
  for (const lease_seconds of [-1, 86_401]) {
    const refused = await ada.claim({ lease_seconds })
    assert.equal([refused.status, refused.body.code], [422, 'AUTONOMY_LEASE_INVALID'])
  }
})

test('a waiting claim gets a run that is queued later', async ({ world }) => {
  const waiting = world.agent().claim({ wait: true })
  const { run } = await world.queued()
  assert.is((await waiting).body.claim.run.id, run)
})

test('a waiting claim ends when its session stops, and gets no run after that', async ({ world }) => {
  const [ada, eve] = [world.agent(), world.agent()]
  const waiting = ada.claim({ wait: true })
  await world.pass(0)
  await world.stop(ada)
  const { run } = await world.queued()
  const refused = await waiting
  assert.equal([refused.status, refused.body.code], [409, 'AUTONOMY_SESSION_REQUIRED'])
  assert.is((await eve.claim()).body.claim.run.id, run)
})

test('a stopping session gets no run and no review', async ({ world }) => {
  const { task, run } = await world.queued()
  const done = await world.queued()
  const [ada, eve] = [world.agent(), world.agent({ state: 'stopping' })]
  await ada.claim({ run_id: done.run })
  await ada.act('complete', done.run)
  const request = { run_id: done.run, task_id: done.task, deadline_at: '2031-01-01T00:00:00Z' }
  const { review } = (await world.post(`/api/task-runs/${done.run}/reviews`, request)).body
  for (const [url, body] of [
    [`/api/task-runs/${run}/attach-session`, { session_id: eve.id }],
    [`/api/task-reviews/${review.review_id}/route`, { session_id: eve.id }],
  ] as const) {
    const { status, body: reply } = await world.post(url, body)
    assert.equal([status, reply.code], [409, 'AUTONOMY_SESSION_REQUIRED'], url)
  }
  assert.is((await world.run(run, task)).status, 'queued')
})

test('a backward clock jump does not extend a lease', async ({ world }) => {
  const { task, run } = await world.queued()
  const ada = world.agent()
  await ada.claim()
  world.clock.jump(-60 * MINUTE)
  for (let passed = 0; passed < 2; passed++) await world.pass(MINUTE)
  assert.is((await world.run(run, task)).status, 'claimed')
  for (let passed = 0; passed < 6; passed++) await world.pass(MINUTE)
  const row = await world.run(run, task)
  assert.equal([row.status, row.recovery_count], ['queued', 1])
})

test('a run attached to a session by a user fails when the session dies with the daemon', async ({ world }) => {
  const attached = async (world: Scene) => {
    const { task, run } = await world.queued()
    const agent = world.agent()
    await world.post(`/api/task-runs/${run}/attach-session`, { session_id: agent.id })
    await world.post(`/api/task-runs/${run}/start`)
    return { task, run, agent }
  }
  const [dead, alive] = [await attached(world), await attached(world)]
  const after = await world.killed([alive.agent])
  const row = await after.run(dead.run, dead.task)
  assert.equal([row.status, row.failure_kind], ['failed', 'daemon_restarted'])
  assert.is((await after.run(alive.run, alive.task)).status, 'running')
  assert.is((await after.post(`/api/task-runs/${alive.run}/complete`)).status, 200)
  await after.close()
})

test.run()
