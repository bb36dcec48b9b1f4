import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Events } from '../../../../plugins/platform/events/api.js'
import { probe } from '../../../../testing/traces.js'
import type { Reply } from '../../../harness/kernel.js'
import { type Scene, scene } from './scene.js'

const look = probe({ events: Events })
const LOOK_MS = 5250
const orchestration = {
  spawn_failure_limit: 0,
  scheduler_bad_tick_threshold: 3,
  scheduler_bad_tick_cooldown: '10m',
}
const profile = { worker: { mode: 'select', agent_name: 'nobody' } }

const finding = async (world: Scene): Promise<string> =>
  (await world.request('GET', '/api/doctor')).body.items.find(({ id }: Reply) => id === 'task_scheduler')?.code
const warned = async (): Promise<number> =>
  (await look.kernel().needs.events.list({ name: 'scheduler.stalled' })).length

test('consecutive passes without a started session are reported once per cooldown, until a run is active', async () => {
  const world = await scene({ plugins: [look.plugin], config: { task: { orchestration } } })
  try {
    const { task, run } = await world.queued({ scope: 'workspace', workspace: world.workspace })
    assert.is(await finding(world), 'scheduler_ready')
    await world.request('PUT', `/api/tasks/${task}/execution-profile`, profile)
    // Between two attempts lies a minute in the end: so many looks come to nothing.
    for (let looks = 0; looks < 60 && (await warned()) === 0; looks++) await world.pass(LOOK_MS)
    assert.equal([await warned(), await finding(world)], [1, 'scheduler_stalled'])
    for (let looks = 0; looks < 60; looks++) await world.pass(LOOK_MS)
    assert.is(await warned(), 1)
    for (let looks = 0; looks < 120 && (await warned()) === 1; looks++) await world.pass(LOOK_MS)
    assert.is(await warned(), 2)
    await world.post(`/api/scheduler/pause`)
    assert.is(await finding(world), 'scheduler_paused')
    await world.post(`/api/scheduler/resume`)
    await world.request('DELETE', `/api/tasks/${task}/execution-profile`)
    assert.is((await world.agent().claim({ scope: 'workspace', run_id: run, lease_seconds: 3600 })).status, 200)
    for (let looks = 0; looks < 10 && (await finding(world)) !== 'scheduler_ready'; looks++) await world.pass(LOOK_MS)
    assert.is(await finding(world), 'scheduler_ready')
  } finally {
    await world.close()
  }
})

test('a threshold of 0 disables the stall warning', async () => {
  const world = await scene({
    config: { task: { orchestration: { ...orchestration, scheduler_bad_tick_threshold: 0 } } },
  })
  try {
    const { task } = await world.queued({ scope: 'workspace', workspace: world.workspace })
    await world.request('PUT', `/api/tasks/${task}/execution-profile`, profile)
    for (let looks = 0; looks < 60; looks++) await world.pass(LOOK_MS)
    assert.is(await finding(world), 'scheduler_ready')
    assert.ok(world.created.length > 2)
  } finally {
    await world.close()
  }
})

test.run()
