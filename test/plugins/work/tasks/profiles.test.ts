import { cp } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openStore } from '../../../../kernel/store/index.js'
import { type Reply, temporaryFolder } from '../../../harness/kernel.js'
import { type Scene, scene } from './scene.js'

const test = suite<{ world: Scene }>('task execution profiles')

test.before.each(async context => {
  context.world = await scene()
})
test.after.each(({ world }) => world.close())

const at = (task: string) => `/api/tasks/${task}/execution-profile`

test('a task without a profile shows the defaults', async ({ world }) => {
  const { task } = await world.queued()
  const { profile } = (await world.request('GET', at(task))).body
  assert.equal(
    [profile.worker, profile.worktree, profile.sandbox],
    [{ mode: 'inherit' }, { mode: 'inherit' }, { mode: 'inherit' }],
  )
  assert.is(profile.task_id, task)
  assert.is((await world.request('GET', at('none'))).body.code, 'task_not_found')
})

test('a profile can be set, read, sent back unchanged, partly changed and deleted', async ({ world }) => {
  const { task } = await world.queued()
  const worker = { mode: 'select', agent_name: 'ada', required_capabilities: ['typescript'] }
  const set = await world.request('PUT', at(task), { worker })
  assert.is(set.status, 200, JSON.stringify(set.body))
  assert.equal(set.body.profile.worker, worker)
  assert.is((await world.request('PUT', at(task), set.body.profile)).status, 200)
  const changed = await world.request('PATCH', `${at(task)}/worktree`, { mode: 'per_run' })
  assert.equal([changed.body.profile.worktree, changed.body.profile.worker], [{ mode: 'per_run' }, worker])
  assert.is((await world.request('DELETE', at(task))).status, 204)
  assert.equal((await world.request('GET', at(task))).body.profile.worker, { mode: 'inherit' })
  const names = (await world.task(task)).events.map(({ event_type }: { event_type: string }) => event_type)
  assert.ok(names.includes('task.execution_profile_updated') && names.includes('task.execution_profile_deleted'))
})

const faults: readonly (readonly [string, object])[] = [
  ['worker.agent_name', { worker: { mode: 'select' } }],
  ['worker.agent_name', { worker: { mode: 'inherit', agent_name: 'ada' } }],
  ['worker.agent_name', { worker: { mode: 'select', agent_name: ' ' } }],
  ['worker.agent_name', { worker: { mode: 'select', agent_name: 'a' }, participants: { allowed_agent_names: ['b'] } }],
  ['worker.required_capabilities.1', { worker: { mode: 'inherit', required_capabilities: ['a', 'a'] } }],
  ['worker.required_capabilities.0', { worker: { mode: 'inherit', required_capabilities: [''] } }],
  [
    'worker.required_capabilities',
    { worker: { mode: 'inherit', required_capabilities: Array.from({ length: 65 }, (_, n) => `c${n}`) } },
  ],
  [
    'participants.preferred_agent_names.0',
    { participants: { allowed_agent_names: ['a'], preferred_agent_names: ['b'] } },
  ],
  ['sandbox.sandbox_ref', { sandbox: { mode: 'ref' } }],
  ['sandbox.sandbox_ref', { sandbox: { mode: 'none', sandbox_ref: 'x' } }],
  ['worktree.worktree_ref', { worktree: { mode: 'ref' } }],
  ['worktree.worktree_ref', { worktree: { mode: 'per_run', worktree_ref: 'x' } }],
  [
    'coordinator.agent_name',
    { coordinator: { mode: 'guided', agent_name: 'boss' }, participants: { allowed_agent_names: ['ada'] } },
  ],
  ['coordinator.guidance', { coordinator: { mode: 'inherit', guidance: 'go on' } }],
  ['review.preferred_agent_names.0', { review: { allowed_agent_names: ['a'], preferred_agent_names: ['b'] } }],
  ['task_id', { task_id: 'another' }],
]

test('an invalid profile is refused with the invalid path', async ({ world }) => {
  const { task } = await world.queued()
  for (const [path, body] of faults) {
    const { status, body: answer } = await world.request('PUT', at(task), body)
    assert.equal(
      [status, answer.code, answer.error.includes(`${path}:`)],
      [400, 'task_profile_invalid', true],
      JSON.stringify([path, answer]),
    )
  }
  assert.is((await world.request('PUT', at(task), { worker: { mode: 'other' } })).status, 400)
  assert.is((await world.request('PUT', at(task), { unknown: {} })).status, 400)
  assert.is((await world.request('PATCH', `${at(task)}/worktree`, { mode: 'ref' })).status, 400)
  assert.is((await world.request('PUT', at('none'), {})).status, 404)
  await world.post(`/api/tasks/${task}/cancel`)
  assert.is((await world.request('PUT', at(task), {})).status, 409)
})

test('queued runs are given only to agents that the current profile allows', async ({ world }) => {
  const { task, run } = await world.queued()
  await world.request('PUT', at(task), { worker: { mode: 'select', agent_name: 'eve' } })
  assert.is((await world.agent({ agentName: 'ada' }).claim()).status, 204)
  const eve = world.agent({ agentName: 'eve' })
  assert.is((await eve.claim()).body.claim.run.id, run)
  await eve.act('release', run)
  await world.request('PUT', at(task), { participants: { required_capabilities: ['go'] } })
  assert.is((await eve.claim()).status, 204)
  assert.is((await eve.claim({ required_capabilities: ['go'] })).body.claim.run.id, run)
  await eve.act('release', run)
  await world.request('DELETE', at(task))
  assert.is((await world.agent({ agentName: 'ada' }).claim()).body.claim.run.id, run)
})

test('runs rotate over the agents that a profile allows or prefers', async () => {
  const world = await scene({ config: { task: { orchestration: { spawn_failure_limit: 0 } } } })
  try {
    const { task } = (
      await world.post('/api/tasks', { title: 'parts', scope: 'workspace', workspace: world.workspace })
    ).body
    const worker = { mode: 'inherit', allowed_agent_names: ['ada', 'eve', 'bob'] }
    await world.request('PUT', at(task.id), { worker, participants: { preferred_agent_names: ['eve', 'bob', 'ida'] } })
    const designations = ['a', 'b', 'c'].map(brief => ({ brief, idempotency_key: brief }))
    await world.post(`/api/tasks/${task.id}/runs/fan-out`, { designations })
    const started = () => world.created.map(wanted => (wanted as Reply).agentName)
    for (let looks = 0; looks < 20 && started().length < 3; looks++) await world.pass(5250)
    // Three are started at once, in no order.
    assert.equal(started().slice(0, 3).sort(), ['bob', 'eve', 'eve'])
    // Whoever could not be started is not tried first again.
    for (let looks = 0; looks < 20 && started().length < 6; looks++) await world.pass(5250)
    assert.equal(started().slice(3, 6).sort(), ['bob', 'bob', 'eve'])
    await world.request('PUT', at(task.id), { worker })
    const before = started().length
    for (let looks = 0; looks < 60 && started().length < before + 3; looks++) await world.pass(5250)
    assert.ok(
      started()
        .slice(before)
        .every((name: string) => ['ada', 'eve', 'bob'].includes(name)),
    )
  } finally {
    await world.close()
  }
})

test('a requeued run gets a session even if the profile was set after the claim', async ({ world }) => {
  const body = { scope: 'workspace', workspace: world.workspace }
  const { task, run } = await world.queued(body)
  const ada = world.agent()
  assert.is((await ada.claim({ scope: 'workspace', lease_seconds: 3600 })).status, 200)
  await world.request('PUT', at(task), { worktree: { mode: 'none' } })
  await ada.act('release', run)
  for (let looks = 0; looks < 20 && world.created.length === 0; looks++) await world.pass(5250)
  assert.ok(world.created.length > 0)
})

test('runs queued by an earlier version get sessions', async ({ world }) => {
  const { task } = await world.queued({ scope: 'workspace', workspace: world.workspace })
  assert.is((await world.post('/api/scheduler/pause', { reason: 'update' })).status, 200)
  await world.request('PUT', at(task), { worktree: { mode: 'none' } })
  const home = await temporaryFolder('tasks-earlier')
  await cp(world.home, home, { recursive: true, filter: source => !source.endsWith('.sock') })
  const store = await openStore({ path: `${home}/svc.db`, now: Date.now })
  await store.db.tx(t => t.run('UPDATE tasks_run SET profiled = NULL'))
  await store.close()
  const later = await scene({ home, clock: world.clock })
  try {
    await later.post('/api/scheduler/resume')
    for (let looks = 0; looks < 20 && later.created.length === 0; looks++) await later.pass(5250)
    assert.ok(later.created.length > 0)
  } finally {
    await later.close()
  }
})

test('a run with runtime mode evidence needs a result to complete', async ({ world }) => {
  const { task, run } = await world.queued()
  await world.request('PUT', at(task), { runtime: { mode: 'evidence' } })
  const ada = world.agent()
  await ada.claim()
  const refused = await ada.act('complete', run)
  assert.equal([refused.status, refused.body.code], [422, 'task_result_required'])
  assert.is((await world.run(run, task)).status, 'claimed')
  assert.is((await ada.act('complete', run, { result: 'done' })).status, 200)
})

test('only agents that the profile allows can review', async ({ world }) => {
  const { task, run } = await world.queued()
  await world.request('PUT', at(task), { review: { agent_name: 'eve', provider: 'local' } })
  const ada = world.agent()
  await ada.claim()
  await ada.act('complete', run)
  const body = { run_id: run, task_id: task, deadline_at: '2099-01-01T00:00:00Z' }
  const { review } = (await world.post(`/api/task-runs/${run}/reviews`, body)).body
  const route = (session: string) => world.post(`/api/task-reviews/${review.review_id}/route`, { session_id: session })
  for (const wrong of [world.agent({ agentName: 'bob' }), world.agent({ agentName: 'eve', provider: 'far' })]) {
    const { status, body: reply } = await route(wrong.id)
    assert.equal([status, reply.code], [409, 'task_review_foreign'], JSON.stringify(reply))
  }
  assert.is((await route(world.agent({ agentName: 'eve' }).id)).status, 200)
})

test.run()
