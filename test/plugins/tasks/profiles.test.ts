import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type Scene, scene } from './scene.js'

const test = suite<{ world: Scene }>('execution profiles of tasks')

test.before.each(async context => {
  context.world = await scene()
})
test.after.each(({ world }) => world.close())

const at = (task: string) => `/api/tasks/${task}/execution-profile`

test('a task without a profile shows how it is worked on by default', async ({ world }) => {
  const { task } = await world.queued()
  const { profile } = (await world.request('GET', at(task))).body
  assert.equal(
    [profile.worker, profile.worktree, profile.sandbox],
    [{ mode: 'inherit' }, { mode: 'inherit' }, { mode: 'inherit' }],
  )
  assert.is(profile.task_id, task)
  assert.is((await world.request('GET', at('none'))).body.code, 'task_not_found')
})

test('a profile is set, read, sent back as it was read, changed in part and forgotten', async ({ world }) => {
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
  ['task_id', { task_id: 'another' }],
]

test('what a profile may not say is refused with its path', async ({ world }) => {
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

test('runs that wait are given only to whom the profile allows, also after it was changed', async ({ world }) => {
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

test.run()
