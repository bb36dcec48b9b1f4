import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { SCRATCH_ID } from '../../../../plugins/desk/workspaces/api.js'
import type { Reply } from '../../../harness/kernel.js'
import { scene } from './scene.js'

const MINUTE = 60_000
const LOOK_MS = 5250

for (const scope of ['workspace', 'global'])
  test(`an unclaimed ${scope} run climbs the ladder: session, starved event, needs attention`, async () => {
    const world = await scene({ config: { task: { orchestration: { spawn_failure_limit: 0 } } } })
    try {
      const { task, run } = await world.queued(scope === 'global' ? {} : { scope, workspace: world.workspace })
      const isTold = async () =>
        (await world.request('GET', `/api/tasks/${task}/timeline`)).body.timeline.some(
          (entry: Reply) => entry.event_type === 'task.run_starved',
        )
      /** Minutes after which each of them was so for the first time. */
      const first: Record<string, number> = {}
      for (let minute = 1; first.attention === undefined && minute < 60; minute++) {
        await world.pass(MINUTE)
        const now = {
          started: world.created.length > 0,
          told: await isTold(),
          attention: (await world.run(run, task)).status === 'needs_attention',
        }
        for (const [name, is] of Object.entries(now)) if (is) first[name] ??= minute
      }
      assert.equal(Object.keys(first), ['started', 'told', 'attention'], JSON.stringify(first))
      assert.ok(
        (first.started ?? 0) >= 5 && (first.told ?? 0) >= 7 && (first.attention ?? 0) >= 11,
        JSON.stringify(first),
      )
      assert.match((await world.run(run, task)).error, /^starved: /)
      const { workspaceId } = world.created[0] as { workspaceId: string }
      assert.is(workspaceId, scope === 'global' ? SCRATCH_ID : world.workspace)
    } finally {
      await world.close()
    }
  })

test('a global task with a profile gets a session in the workspace scratch', async () => {
  const world = await scene()
  try {
    const { task } = (await world.post('/api/tasks', { title: 'work', scope: 'global' })).body
    const profile = { worker: { mode: 'select', agent_name: 'ada' } }
    assert.is((await world.request('PUT', `/api/tasks/${task.id}/execution-profile`, profile)).status, 200)
    await world.post(`/api/tasks/${task.id}/start`)
    await world.pass(LOOK_MS)
    const [request] = world.created as { workspaceId: string; agentName: string }[]
    assert.equal([request?.workspaceId, request?.agentName], [SCRATCH_ID, 'ada'])
  } finally {
    await world.close()
  }
})

test('the ladder does not advance while a session is active in the workspace', async () => {
  const world = await scene()
  try {
    const body = { scope: 'workspace', workspace: world.workspace }
    const first = await world.queued(body)
    const ada = world.agent()
    assert.is((await ada.claim({ scope: 'workspace', lease_seconds: 3600 })).status, 200)
    const second = await world.queued(body)
    for (let minutes = 0; minutes < 30; minutes++) await world.pass(MINUTE)
    assert.is((await world.run(second.run, second.task)).status, 'queued')
    assert.is(world.created.length, 0)
    assert.is((await ada.act('complete', first.run)).status, 200)
  } finally {
    await world.close()
  }
})

test('a session that could not be started is retried after a backward clock jump', async () => {
  const world = await scene()
  try {
    const { task } = await world.queued({ scope: 'workspace', workspace: world.workspace })
    await world.request('PUT', `/api/tasks/${task}/execution-profile`, { worktree: { mode: 'none' } })
    for (let looks = 0; looks < 50 && world.created.length < 1; looks++) await world.pass(LOOK_MS)
    world.clock.jump(-60 * MINUTE)
    for (let looks = 0; looks < 50 && world.created.length < 2; looks++) await world.pass(LOOK_MS)
    assert.ok(world.created.length >= 2, `${world.created.length} sessions were tried`)
  } finally {
    await world.close()
  }
})

test.run()
