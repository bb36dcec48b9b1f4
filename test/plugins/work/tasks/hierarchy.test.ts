import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type Scene, scene } from './scene.js'

const test = suite<{ world: Scene }>('parents and children')
test.before.each(async context => {
  context.world = await scene()
})
test.after.each(({ world }) => world.close())

const make = async (world: Scene): Promise<string> =>
  (await world.post('/api/tasks', { title: 'whole', scope: 'global' })).body.task.id
const child = async (world: Scene, of: string): Promise<string> =>
  (await world.post(`/api/tasks/${of}/children`, { title: 'part', scope: 'global' })).body.task.id
const wait = async (world: Scene, id: string, on: string) => {
  const { status, body } = await world.post(`/api/tasks/${id}/dependencies`, { depends_on_task_id: on })
  return status === 200 ? status : `${status} ${body.code}`
}
const status = async (world: Scene, id: string): Promise<string> => (await world.task(id)).task.status
async function complete(world: Scene, id: string): Promise<void> {
  const { run } = (await world.post(`/api/tasks/${id}/start`)).body
  const ada = world.agent()
  await ada.claim({ run_id: run.id })
  assert.is((await ada.act('complete', run.id)).status, 200)
}

test('a task that waits for one of its ancestors is a cycle', async ({ world }) => {
  const root = await make(world)
  const middle = await child(world, root)
  const leaf = await child(world, middle)
  assert.is(await wait(world, leaf, middle), '409 task_cycle')
  assert.is(await wait(world, leaf, root), '409 task_cycle')
  assert.is(await status(world, leaf), 'ready')
})

test('a task that waits for a task waiting for its parent is a cycle', async ({ world }) => {
  const root = await make(world)
  const part = await child(world, root)
  const other = await make(world)
  assert.is(await wait(world, other, root), 200)
  assert.is(await wait(world, part, other), '409 task_cycle')
  const third = await make(world)
  assert.is(await wait(world, part, third), 200)
  assert.is(await wait(world, third, root), '409 task_cycle')
})

test('a task may wait for its sibling and for the child of another task', async ({ world }) => {
  const [root, other] = [await make(world), await make(world)]
  const [first, second, far] = [await child(world, root), await child(world, root), await child(world, other)]
  assert.is(await wait(world, second, first), 200)
  assert.is(await wait(world, first, far), 200)
  for (const id of [far, first, second]) await complete(world, id)
  assert.equal([await status(world, root), await status(world, other)], ['completed', 'completed'])
})

test('a parent is completed when its last child that was not completed is deleted', async ({ world }) => {
  const root = await make(world)
  const [done, dropped] = [await child(world, root), await child(world, root)]
  const after = await make(world)
  assert.is(await wait(world, after, root), 200)
  await complete(world, done)
  assert.equal([await status(world, root), await status(world, after)], ['ready', 'blocked'])
  assert.is((await world.request('DELETE', `/api/tasks/${dropped}`)).status, 204)
  assert.equal([await status(world, root), await status(world, after)], ['completed', 'ready'])
  const alone = await make(world)
  assert.is((await world.request('DELETE', `/api/tasks/${await child(world, alone)}`)).status, 204)
  assert.is(await status(world, alone), 'ready', 'a task without children is not done')
})

test.run()
