import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Reply } from '../../../harness/kernel.js'
import { type Scene, scene } from './scene.js'

const test = suite<{ world: Scene }>('task dashboard')

test.before.each(async context => {
  context.world = await scene()
})
test.after.each(({ world }) => world.close())

const dashboard = async (world: Scene, query: string): Promise<Reply> =>
  (await world.request('GET', `/api/observe/tasks/dashboard${query}`)).body.dashboard

test('the dashboard of a scope counts only that scope, also after changes', async ({ world }) => {
  const place = { scope: 'workspace', workspace: world.workspace }
  const global = await world.queued()
  const local = await world.queued(place)
  await world.queued(place)
  const ada = world.agent()
  const counts = async () =>
    Promise.all(
      ['', '?scope=global', '?scope=workspace', `?scope=workspace&workspace=${world.workspace}`].map(async query => {
        const { totals, active_runs: active, cards } = await dashboard(world, query)
        const { samples } = cards.latency.claim_latency_ms
        return [
          totals.tasks_total,
          totals.runs_total,
          totals.queued_runs,
          totals.completed_runs,
          active.items.length,
          samples,
        ]
      }),
    )
  const before = [
    [3, 3, 3, 0, 3, 0],
    [1, 1, 1, 0, 1, 0],
    [2, 2, 2, 0, 2, 0],
    [2, 2, 2, 0, 2, 0],
  ]
  assert.equal(await counts(), before)
  assert.is((await ada.claim({ run_id: local.run, workspace_id: world.workspace })).status, 200)
  assert.is((await ada.act('complete', local.run)).status, 200)
  const after = [
    [3, 3, 2, 1, 2, 1],
    [1, 1, 1, 0, 1, 0],
    [2, 2, 1, 1, 1, 1],
    [2, 2, 1, 1, 1, 1],
  ]
  assert.equal(await counts(), after)
  await world.post(`/api/tasks/${global.task}/cancel`)
  assert.is((await world.request('DELETE', `/api/tasks/${global.task}`)).status, 204)
  assert.equal((await counts())[1], [0, 0, 0, 0, 0, 0])
  assert.is((await dashboard(world, '?scope=global')).freshness.status, 'empty')
})

test.run()
