import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type Agent, type Scene, scene } from './scene.js'

const test = suite<{ world: Scene }>('successor runs')
test.before.each(async context => {
  context.world = await scene()
})
test.after.each(({ world }) => world.close())

interface Held {
  readonly agent: Agent
  readonly run: string
  readonly brief: string
}

/** A task of two parts, each held by a session. The second one counts as the later: they are queued at the same time. */
async function twoParts(world: Scene) {
  const { task } = (await world.post('/api/tasks', { title: 'two parts', scope: 'global' })).body
  const designations = [{ brief: 'one' }, { brief: 'two' }]
  await world.post(`/api/tasks/${task.id}/runs/fan-out`, { designations, idempotency_key: 'k' })
  const held: Held[] = []
  for (const agent of [world.agent(), world.agent()]) {
    const { run } = (await agent.claim()).body.claim
    held.push({ agent, run: run.id, brief: run.designation.brief })
  }
  const [first, second] = held.sort((a, b) => (a.run < b.run ? -1 : 1)) as [Held, Held]
  return { task: task.id as string, first, second }
}
const status = async (world: Scene, id: string): Promise<string> => (await world.task(id)).task.status
const names = async (world: Scene, id: string): Promise<string[]> =>
  (await world.request('GET', `/api/tasks/${id}/timeline`)).body.timeline.map(
    (entry: { event_type: string }) => entry.event_type,
  )

for (const [how, route, then] of [
  ['crashed', 'recover', 'needs_attention'],
  ['failed', 'retry', 'needs_attention'],
] as const)
  test(`a part that ${how} can be repeated after the other part has been completed`, async ({ world }) => {
    const { task, first, second } = await twoParts(world)
    if (how === 'crashed') await world.stop(first.agent, 'crashed')
    else await first.agent.act('fail', first.run, { error: 'no network' })
    await second.agent.act('complete', second.run)
    assert.is(await status(world, task), then)
    const again = await world.post(`/api/runs/${first.run}/${route}`)
    assert.equal([again.status, again.body.run?.designation.brief], [201, first.brief], JSON.stringify(again.body))
    assert.is(await status(world, task), 'ready')
    const agent = world.agent()
    await agent.claim()
    await agent.act('complete', again.body.run.id)
    assert.is(await status(world, task), 'completed')
  })

test('a failed attempt is not repeated once a later one has completed the task', async ({ world }) => {
  const { task, run } = await world.queued()
  const ada = world.agent()
  await ada.claim()
  await ada.act('fail', run, { error: 'no network' })
  const { run: next } = (await world.post(`/api/tasks/${task}/start`, { idempotency_key: 'second' })).body
  await ada.claim()
  await ada.act('complete', next.id)
  assert.is((await world.post(`/api/runs/${run}/retry`)).body.code, 'task_conflict')
  assert.is(await status(world, task), 'completed')
})

test('a repeated retry returns its run and emits no event', async ({ world }) => {
  const { task, run } = await world.queued()
  await world.post(`/api/runs/${run}/fail`, { reason: 'not yet' })
  const first = await world.post(`/api/runs/${run}/retry`)
  const again = await world.post(`/api/runs/${run}/retry`)
  assert.equal([again.status, again.body.run.id], [201, first.body.run.id])
  assert.is((await names(world, task)).filter(name => name === 'task.run_operator_retry').length, 1)
})

test('a recovered task needs attention again when the same kind of block recurs, until it is completed', async ({
  world,
}) => {
  const { task, run } = await world.queued()
  const block = async () => {
    const body = { kind: 'capability', reason: 'no browser' }
    const { block: made } = (await world.post(`/api/tasks/${task}/blocks`, body)).body
    await world.post(`/api/tasks/${task}/blocks/${made.id}/clear`)
    return status(world, task)
  }
  assert.equal([await block(), await block(), await block()], ['ready', 'ready', 'needs_attention'])
  await world.post(`/api/tasks/${task}/recover`)
  assert.is(await status(world, task), 'ready')
  assert.is(await block(), 'needs_attention')
  await world.post(`/api/tasks/${task}/recover`)
  const ada = world.agent()
  await ada.claim({ run_id: run })
  await ada.act('complete', run)
  assert.is(await status(world, task), 'completed')
})

test('a fan-out waits for the approval of its task like a start does', async ({ world }) => {
  const create = async () =>
    (await world.post('/api/tasks', { title: 'work', scope: 'global', approval_policy: 'manual' })).body.task.id
  const fanOut = (id: string) =>
    world.post(`/api/tasks/${id}/runs/fan-out`, { designations: [{ brief: 'one' }], idempotency_key: id })
  const [pending, rejected] = [await create(), await create()]
  await world.post(`/api/tasks/${rejected}/reject`)
  assert.is((await fanOut(pending)).body.code, 'task_approval_pending')
  assert.is((await fanOut(rejected)).body.code, 'task_conflict')
})

test('a draining daemon attaches no run and recovers no task', async ({ world }) => {
  const { task, run } = await world.queued()
  const stuck = await world.queued()
  const ada = world.agent()
  await ada.claim({ run_id: stuck.run })
  await world.stop(ada, 'crashed')
  const eve = world.agent()
  await world.post('/api/drain')
  for (const [url, body] of [
    [`/api/task-runs/${run}/attach-session`, { session_id: eve.id }],
    [`/api/tasks/${stuck.task}/recover`, {}],
    [`/api/runs/${stuck.run}/recover`, {}],
  ] as const) {
    const { status: code, body: reply } = await world.post(url, body)
    assert.equal([code, reply.code], [503, 'draining'], url)
  }
  assert.equal([await status(world, task), await status(world, stuck.task)], ['ready', 'needs_attention'])
})

test.run()
