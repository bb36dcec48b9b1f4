import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Requests } from '../../../../kernel/plugin.js'
import { DaemonErrors } from '../../../../plugins/desk/daemon/api.js'
import { probe } from '../../../../testing/traces.js'
import type { Reply } from '../../../harness/kernel.js'
import { type Agent, type Scene, scene } from './scene.js'

const SWEEP_MS = 16_000
const look = probe({ request: Requests })
let refusal: Error | undefined
const test = suite<{ world: Scene }>('wakes of task creators')

test.before.each(async context => {
  refusal = undefined
  context.world = await scene({ plugins: [look.plugin], refuses: () => refusal })
})
test.after.each(({ world }) => world.close())

/** As the agent of a session, whose identity nobody judges here. */
const as = async ({ id }: Agent, url: string, body: object = {}): Promise<Reply> => {
  const actor = { ...look.kernel().actor, onBehalfOf: { kind: 'agent_session', id } }
  const reply = await look.kernel().needs.request({ method: 'POST', url, body }, actor)
  if (reply.status >= 300) throw new Error(`POST ${url}: ${reply.status} ${reply.body}`)
  return JSON.parse(reply.body)
}

/** A task that the agent of a session creates, with a queued run. */
async function created(world: Scene, agent: Agent, more: object = {}): Promise<{ task: string; run: string }> {
  const body = { title: 'part', scope: 'workspace', ...more }
  const { task } = await as(agent, '/api/tasks', body)
  const { run } = (await world.post(`/api/tasks/${task.id}/start`)).body
  return { task: task.id, run: run.id }
}

const eventsOf = async (world: Scene, task: string): Promise<Reply[]> =>
  (await world.request('GET', `/api/tasks/${task}/timeline?limit=1000`)).body.timeline
    .filter((entry: Reply) => entry.event_type.startsWith('task.wake.'))
    .map((entry: Reply) => [entry.event_type, entry.payload])

test('each end, block and need for attention wakes the creator once', async ({ world }) => {
  const [boss, worker] = [world.agent(), world.agent()]
  const { task, run } = await created(world, boss, { title: 'paint it' })
  const { block } = (await world.post(`/api/tasks/${task}/blocks`, { kind: 'needs_input', reason: 'which colour?' }))
    .body
  await world.pass(0)
  await world.post(`/api/tasks/${task}/blocks/${block.id}/clear`)
  await worker.claim({ scope: 'workspace' })
  await world.stop(worker, 'crashed')
  await world.pass(SWEEP_MS)
  const again = (await world.post(`/api/runs/${run}/recover`, { reason: 'go on' })).body.run.id
  const other = world.agent()
  await other.claim({ scope: 'workspace' })
  await other.act('complete', again)
  await world.pass(SWEEP_MS)
  assert.equal(
    world.woken.map(({ id, text }) => [id, /: (\w+)(, ".*")?$/m.exec(text)?.[1], text.includes('"paint it"')]),
    ['blocked', 'needs_attention', 'completed'].map(status => [boss.id, status, true]),
    JSON.stringify(world.woken),
  )
  assert.equal(
    await eventsOf(world, task),
    ['blocked', 'needs_attention', 'completed'].map(status => [
      'task.wake.delivered',
      { session_id: boss.id, statuses: [status] },
    ]),
  )
})

test('the creator is not woken by its own change, with wake_creator false, or when stopped', async ({ world }) => {
  const [boss, worker] = [world.agent(), world.agent()]
  const own = await created(world, boss)
  await as(boss, `/api/tasks/${own.task}/cancel`, { reason: 'not needed' })
  assert.equal(await eventsOf(world, own.task), [
    ['task.wake.suppressed', { session_id: boss.id, statuses: ['canceled'], reason: 'own_change' }],
  ])
  const quiet = await created(world, boss, { wake_creator: false })
  await worker.claim({ run_id: quiet.run, scope: 'workspace' })
  await worker.act('complete', quiet.run)
  const last = await created(world, boss)
  await world.stop(boss)
  await worker.claim({ run_id: last.run, scope: 'workspace' })
  await worker.act('complete', last.run)
  await world.pass(SWEEP_MS)
  assert.equal(await eventsOf(world, quiet.task), [])
  assert.equal(await eventsOf(world, last.task), [
    ['task.wake.suppressed', { session_id: boss.id, statuses: ['completed'], reason: 'session_stopped' }],
  ])
  assert.equal(world.woken, [])
})

test('undeliverable wakes are delivered later in one turn, once, also after a daemon restart', async ({ world }) => {
  const [boss, worker] = [world.agent(), world.agent()]
  const tasks: string[] = []
  refusal = DaemonErrors.draining('not now')
  for (let n = 0; n < 3; n++) {
    const { task, run } = await created(world, boss)
    tasks.push(task)
    await worker.claim({ run_id: run, scope: 'workspace' })
    await worker.act('complete', run)
    await world.pass(SWEEP_MS)
  }
  assert.equal(world.woken, [])
  const next = await world.killed([boss])
  try {
    refusal = undefined
    await next.pass(SWEEP_MS)
    await next.pass(SWEEP_MS)
    // A batch that was to be queued before stays what it was; what came after is another one.
    const named = next.woken.flatMap(({ text }) => text.match(/task_\w+/g) ?? [])
    assert.equal([...named].sort(), [...tasks].sort(), JSON.stringify(next.woken))
    assert.ok(next.woken.length <= 2)
  } finally {
    await next.close()
  }
})

test('a result with unknown task and run ids is reported as suspected and completes', async ({ world }) => {
  const ada = world.agent()
  const other = await world.queued()
  const { task, run } = await world.queued({ priority: 'high' })
  await ada.claim({ run_id: run })
  const made = 'task_0123456789abcdef'
  const result = {
    summary: `made ${made}, after ${other.task} and ${other.run}; trun_00000000000000ff is next, ${made}`,
  }
  assert.is((await ada.act('complete', run, { result })).body.lease.status, 'completed')
  const { timeline } = (await world.request('GET', `/api/tasks/${task}/timeline`)).body
  const suspected = timeline.filter((entry: Reply) => entry.event_type === 'task.completion.hallucination_suspected')
  assert.equal(
    suspected.map(({ payload, run }: Reply) => [payload.unknown, run.id]),
    [[[made, 'trun_00000000000000ff'], run]],
  )
  await ada.claim({ run_id: other.run })
  await ada.act('complete', other.run, { result: `after ${task}` })
  const clean = (await world.request('GET', `/api/tasks/${other.task}/timeline`)).body.timeline
  assert.not(clean.some((entry: Reply) => entry.event_type.includes('hallucination')))
})

test.run()
