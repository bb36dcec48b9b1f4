import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Requests } from '../../../../kernel/plugin.js'
import { Prepared } from '../../../../kernel/store/statements.js'
import { EFFECTS } from '../../../../plugins/work/tasks/transitions.js'
import { probe } from '../../../../testing/traces.js'
import { type Scene, scene } from './scene.js'

const look = probe({ request: Requests })
const test = suite<{ world: Scene }>('run and task transitions')

test.before.each(async context => {
  context.world = await scene({ plugins: [look.plugin] })
})
test.after.each(({ world }) => world.close())

/** The SQL statements that run during the work. */
async function statementsOf(work: () => Promise<unknown>): Promise<string[]> {
  const { rows } = Prepared.prototype
  const found: string[] = []
  Prepared.prototype.rows = function (...given) {
    found.push(this.sql)
    return rows.apply(this, given)
  }
  await work().finally(() => Object.assign(Prepared.prototype, { rows }))
  return found
}

test('claim, start, heartbeat and complete run a small number of statements', async ({ world }) => {
  const ada = world.agent()
  // The first claim reads facts that are kept in memory afterwards.
  const first = (await world.queued()).run
  await ada.claim()
  await ada.act('complete', first)
  const [{ run }, next] = [await world.queued(), await world.queued()]
  await world.queued()
  const count = async (work: () => Promise<unknown>) => (await statementsOf(work)).length
  const counts = {
    claim: await count(() => ada.claim()),
    heartbeat: await count(() => ada.act('heartbeat', run)),
    start: await count(() => ada.act('start', run)),
    complete: await count(() => ada.act('complete', run)),
    claimAndStart: await count(() => ada.claim({ start: true })),
    completeAndNext: await count(() => ada.act('complete', next.run, { next: {} })),
  }
  const most = { claim: 6, heartbeat: 4, start: 6, complete: 7, claimAndStart: 10, completeAndNext: 14 }
  for (const [name, limit] of Object.entries(most))
    assert.ok(counts[name as keyof typeof counts] <= limit, `${name}: ${JSON.stringify(counts)}`)
})

test('a session that has lost its run by any operation can claim the next one', async ({ world }) => {
  const ada = world.agent()
  const ways: ((run: string) => Promise<unknown>)[] = [
    run => ada.act('complete', run),
    run => ada.act('fail', run, { error: 'no paint' }),
    run => ada.act('release', run),
    run => world.post(`/api/task-runs/${run}/cancel`),
    run => world.post(`/api/runs/${run}/release`),
    () => world.pass(400_000),
  ]
  for (const [n, way] of ways.entries()) {
    const { task } = await world.queued({ max_attempts: 1 })
    const claimed = (await ada.claim()).body.claim.run.id
    assert.is((await ada.claim()).body.code, 'AUTONOMY_LEASE_ALREADY_HELD', `${n}`)
    await way(claimed)
    assert.match((await ada.act('heartbeat', claimed)).body.code, /AUTONOMY_(NO_ACTIVE_LEASE|LEASE_EXPIRED)/, `${n}`)
    await world.post(`/api/tasks/${task}/cancel`)
  }
})

test('a run whose row changes while it is leased is completed with the new row', async ({ world }) => {
  const { task, run } = await world.queued()
  const ada = world.agent()
  await ada.claim()
  const profile = { runtime: { mode: 'evidence' } }
  assert.is((await world.request('PUT', `/api/tasks/${task}/execution-profile`, profile)).status, 200)
  assert.is((await ada.act('complete', run)).body.code, 'task_result_required')
  assert.is((await ada.act('complete', run, { result: { tests: 'pass' } })).status, 200)
})

test('the effects of a state change run in one order', async ({ world }) => {
  assert.equal(
    EFFECTS.map(({ name }) => name),
    ['leases', 'budgets', 'reviews', 'status', 'wakes'],
  )
  const actor = { ...look.kernel().actor, onBehalfOf: { kind: 'agent_session', id: world.agent().id } }
  const body = { title: 'work', scope: 'workspace' }
  const made = await look.kernel().needs.request({ method: 'POST', url: '/api/tasks', body }, actor)
  const { id } = JSON.parse(made.body).task
  const first = (await world.post(`/api/tasks/${id}/start`)).body.run.id
  const ada = world.agent()
  await ada.claim({ run_id: first, scope: 'workspace' })
  await ada.act('fail', first, { error: 'no paint' })
  await world.post(`/api/task-runs/${first}/reviews`, {
    run_id: first,
    task_id: id,
    deadline_at: new Date(world.clock.now() + 3_600_000).toISOString(),
  })
  await world.request('PUT', `/api/budgets/task/${id}`, { wall_seconds: 600 })
  const second = (await world.post(`/api/runs/${first}/retry`)).body.run.id
  await ada.claim({ run_id: second, scope: 'workspace' })
  const wanted = [
    /^UPDATE tasks_run SET/,
    /^DELETE FROM tasks_hold/,
    /^UPDATE tasks_review SET/,
    /^UPDATE tasks_task SET "?status/,
    /^INSERT INTO tasks_wake/,
  ]
  const ran = await statementsOf(() => world.post(`/api/tasks/${id}/cancel`, { reason: 'not needed' }))
  const places = wanted.map(sql => ran.findIndex(one => sql.test(one.trim())))
  assert.ok(!places.includes(-1), `${places}: ${ran.join(';\n')}`)
  assert.equal(
    places.toSorted((a, b) => a - b),
    places,
  )
})

test.run()
