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

test('claim, start, heartbeat and complete run a fixed number of statements', async ({ world }) => {
  const { run } = await world.queued()
  const ada = world.agent()
  const counts = {
    claim: (await statementsOf(() => ada.claim())).length,
    heartbeat: (await statementsOf(() => ada.act('heartbeat', run))).length,
    start: (await statementsOf(() => ada.act('start', run))).length,
    complete: (await statementsOf(() => ada.act('complete', run))).length,
  }
  assert.equal(counts, { claim: 11, heartbeat: 6, start: 14, complete: 15 })
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
