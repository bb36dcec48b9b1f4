import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Requests } from '../../../../kernel/plugin.js'
import { probe } from '../../../../testing/traces.js'
import type { Reply } from '../../../harness/kernel.js'
import { type Scene, scene } from './scene.js'

const look = probe({ request: Requests })
const test = suite<{ world: Scene }>('partly failed fan-outs')
test.before.each(async context => {
  context.world = await scene({ plugins: [look.plugin] })
})
test.after.each(({ world }) => world.close())

type Outcome = 'complete' | 'fail' | 'cancel'

/** A task of one part per brief, none claimed yet; the runs in the order of the briefs. */
async function parts(world: Scene, briefs: readonly string[], more: object = {}) {
  const { task } = (await world.post('/api/tasks', { title: 'parts', scope: 'global', ...more })).body
  const designations = briefs.map(brief => ({ brief }))
  const fanned = await world.post(`/api/tasks/${task.id}/runs/fan-out`, { designations, idempotency_key: task.id })
  return { task: task.id as string, runs: fanned.body.runs.map((run: Reply) => run.id) as string[] }
}

async function end(world: Scene, run: string, how: Outcome): Promise<void> {
  if (how === 'cancel') {
    await world.post(`/api/task-runs/${run}/cancel`)
    return
  }
  const agent = world.agent()
  assert.is((await agent.claim({ run_id: run })).status, 200)
  assert.is((await agent.act(how, run, how === 'fail' ? { error: 'no network' } : {})).status, 200)
}

const openRuns = async (world: Scene, task: string): Promise<Reply[]> =>
  (await world.request('GET', `/api/tasks/${task}/runs`)).body.runs
    .filter((run: Reply) => run.status === 'queued')
    .sort((a: Reply, b: Reply) => a.designation.index - b.designation.index)
const facts = async (world: Scene, id: string) => {
  const { task, next_action, why } = await world.task(id)
  return { status: task.status, reason: task.needs_attention_reason ?? '', why, next: next_action }
}
const lane = async (world: Scene, task: string): Promise<string | undefined> =>
  (await world.request('GET', '/api/observe/tasks/inbox')).body.inbox.groups.find((group: Reply) =>
    group.items.some((item: Reply) => item.task.id === task),
  )?.lane

for (const [outcomes, max, status] of [
  [['complete', 'complete'], 3, 'completed'],
  [['fail', 'complete'], 3, 'needs_attention'],
  [['complete', 'fail'], 3, 'needs_attention'],
  [['fail', 'complete'], 1, 'failed'],
  [['complete', 'cancel'], 3, 'completed'],
  [['cancel', 'complete'], 3, 'completed'],
  [['cancel', 'cancel'], 3, 'canceled'],
  [['cancel', 'fail'], 3, 'needs_attention'],
] as const)
  test(`parts that ${outcomes.join(' and ')} with ${max} attempts make the task ${status}`, async ({ world }) => {
    const { task, runs } = await parts(world, ['one', 'two'], { max_attempts: max })
    for (const [index, how] of outcomes.entries()) await end(world, runs[index] ?? '', how)
    const now = await facts(world, task)
    assert.is(now.status, status)
    assert.is(now.reason.startsWith('part_failed'), status === 'needs_attention', now.reason)
  })

test('a failed part is in the inboxes and on the board, with the command that queues it again', async ({ world }) => {
  const { task, runs } = await parts(world, ['one', 'two'])
  await end(world, runs[0] ?? '', 'fail')
  assert.is(await lane(world, task), 'failed_runs', 'while the other part waits')
  await end(world, runs[1] ?? '', 'complete')
  const now = await facts(world, task)
  assert.match(now.reason, /part_failed: .*one.*no network/)
  assert.equal([now.why, now.next], [now.reason, `svc task recover ${task}`])
  assert.is(await lane(world, task), 'failed_runs')
  const { dashboard } = (await world.request('GET', '/api/observe/tasks/dashboard')).body
  assert.equal([dashboard.totals.needs_attention_tasks, dashboard.health.status], [1, 'degraded'])
})

test('recovering the task queues one run for each failed part, and the task completes with the last of them', async ({
  world,
}) => {
  const { task, runs } = await parts(world, ['one', 'two', 'three'])
  for (const [index, how] of (['fail', 'complete', 'fail'] as const).entries()) await end(world, runs[index] ?? '', how)
  const recovered = await world.post(`/api/tasks/${task}/recover`)
  assert.equal([recovered.status, recovered.body.task.status], [200, 'ready'])
  const again = await openRuns(world, task)
  assert.equal(
    again.map(run => [run.designation.brief, run.attempt, run.previous_run_id]),
    [
      ['one', 2, runs[0]],
      ['three', 2, runs[2]],
    ],
  )
  await end(world, again[0]?.id, 'complete')
  assert.is((await facts(world, task)).status, 'ready')
  await end(world, again[1]?.id, 'complete')
  assert.is((await facts(world, task)).status, 'completed')
  assert.is(await lane(world, task), undefined)
})

test('attempts count per part, and an exhausted part fails the task', async ({ world }) => {
  const { task, runs } = await parts(world, ['one', 'two'], { max_attempts: 2 })
  await end(world, runs[0] ?? '', 'fail')
  await end(world, runs[1] ?? '', 'fail')
  const attempts: number[] = []
  for (const run of runs) attempts.push((await world.post(`/api/runs/${run}/retry`)).body.run.attempt)
  assert.equal(attempts, [2, 2])
  const again = await openRuns(world, task)
  await end(world, again[0]?.id, 'complete')
  await end(world, again[1]?.id, 'fail')
  assert.is((await facts(world, task)).status, 'failed')
})

test('a fan-out replaces earlier runs, and a later run replaces the fan-out', async ({ world }) => {
  const { task, run } = await world.queued()
  await end(world, run, 'fail')
  const { run: second } = (await world.post(`/api/tasks/${task}/start`, { idempotency_key: 'second' })).body
  await end(world, second.id, 'fail')
  const body = { designations: [{ brief: 'one' }, { brief: 'two' }], idempotency_key: 'k' }
  const { runs } = (await world.post(`/api/tasks/${task}/runs/fan-out`, body)).body
  assert.equal(
    runs.map((each: Reply) => each.attempt),
    [1, 1],
  )
  await end(world, runs[0].id, 'complete')
  await end(world, runs[1].id, 'fail')
  assert.is((await facts(world, task)).status, 'needs_attention')
  const { run: last } = (await world.post(`/api/tasks/${task}/start`, { idempotency_key: 'last' })).body
  assert.equal([last.attempt, (await facts(world, task)).status], [3, 'ready'])
  await end(world, last.id, 'complete')
  assert.is((await facts(world, task)).status, 'completed')
})

test('children do not complete a parent with a failed part', async ({ world }) => {
  const { task, runs } = await parts(world, ['one', 'two'])
  const child = await world.post(`/api/tasks/${task}/children`, { title: 'child', scope: 'global' })
  await end(world, runs[0] ?? '', 'fail')
  await end(world, runs[1] ?? '', 'complete')
  const { run } = (await world.post(`/api/tasks/${child.body.task.id}/start`)).body
  await end(world, run.id, 'complete')
  assert.is((await facts(world, task)).status, 'needs_attention')
})

/** Has a review of a completed run rejected; returns the run that goes on with its task. */
async function rejected(world: Scene, task: string, run: string): Promise<string> {
  const deadline_at = new Date(world.clock.now() + 3_600_000).toISOString()
  const reply = await world.post(`/api/task-runs/${run}/reviews`, { run_id: run, task_id: task, deadline_at })
  const verdict = { outcome: 'rejected', reason: 'no tests', confidence: 1, delivery_id: `d ${run}` }
  const at = `/api/task-reviews/${reply.body.review.review_id}/verdict`
  return (await world.post(at, { run_id: run, verdict })).body.continuation_run.id
}

type LetGo = () => Promise<unknown>
/** What can hold a task back: prepared while it is open, put on once it is completed, and taken away again. */
const HOLDS: Record<string, (world: Scene, task: string, parent: string) => Promise<() => Promise<LetGo>>> = {
  pause: async (world, _task, parent) => async () => {
    await world.post(`/api/tasks/${parent}/pause`, { reason: 'not now' })
    return () => world.post(`/api/tasks/${parent}/resume`)
  },
  dependency: async (world, task) => {
    const other = await world.queued({ title: 'other' })
    await world.post(`/api/tasks/${task}/dependencies`, { depends_on_task_id: other.task })
    await end(world, other.run, 'complete')
    return async () => {
      const again = await rejected(world, other.task, other.run)
      return () => end(world, again, 'complete')
    }
  },
  approval: async (world, task) => async () => {
    await world.request('PATCH', `/api/tasks/${task}`, { approval_policy: 'manual' })
    return () => world.post(`/api/tasks/${task}/approve`)
  },
}
for (const [name, hold] of Object.entries(HOLDS))
  test(`a completed task reopened by a rejected review is held by its ${name}`, async ({ world }) => {
    const parent = (await world.post('/api/tasks', { title: 'parent', scope: 'global' })).body.task.id
    await world.post(`/api/tasks/${parent}/children`, { title: 'sibling', scope: 'global' })
    const { id: task } = (await world.post(`/api/tasks/${parent}/children`, { title: 'work', scope: 'global' })).body
      .task
    const putOn = await hold(world, task, parent)
    const { run } = (await world.post(`/api/tasks/${task}/start`)).body
    await end(world, run.id, 'complete')
    const letGo = await putOn()
    assert.is((await facts(world, task)).status, 'completed')
    const next = await rejected(world, task, run.id)
    assert.is((await facts(world, task)).status, 'blocked')
    assert.is((await world.agent().claim({ run_id: next })).status, 204)
    await letGo()
    assert.is((await facts(world, task)).status, 'ready')
    assert.is((await world.agent().claim({ run_id: next })).status, 200)
  })

test('a rejected review of one part queues that part again', async ({ world }) => {
  const { task, runs } = await parts(world, ['one', 'two'])
  for (const run of runs) await end(world, run, 'complete')
  const deadline_at = new Date(world.clock.now() + 3_600_000).toISOString()
  const about = { run_id: runs[0], task_id: task, deadline_at }
  const { review_id: id } = (await world.post(`/api/task-runs/${runs[0]}/reviews`, about)).body.review
  const verdict = { outcome: 'rejected', reason: 'no tests', confidence: 1, delivery_id: 'd' }
  const { continuation_run: next } = (await world.post(`/api/task-reviews/${id}/verdict`, { run_id: runs[0], verdict }))
    .body
  assert.equal([next.designation.brief, next.attempt], ['one', 2])
  await end(world, next.id, 'fail')
  assert.is((await facts(world, task)).status, 'needs_attention')
})

/** A task whose profile wants a coordinator. */
async function guided(world: Scene, more: object = {}) {
  const { task } = (await world.post('/api/tasks', { title: 'guided', scope: 'global' })).body
  const at = `/api/tasks/${task.id}`
  const { status, body } = await world.request('PUT', `${at}/execution-profile`, {
    coordinator: { mode: 'guided', guidance: 'keep it small', ...more },
  })
  assert.is(status, 200, JSON.stringify(body))
  const fanOut = (key: string, ...briefs: string[]) =>
    world.post(`${at}/runs/fan-out`, { designations: briefs.map(brief => ({ brief })), idempotency_key: key })
  return { task: task.id as string, at, fanOut }
}

test('a fan-out of a task with a coordinator has one, which ends according to its parts', async ({ world }) => {
  const { task, fanOut } = await guided(world)
  const { runs, designation_group_id: group } = (await fanOut('k', 'one', 'two')).body
  assert.equal(
    runs.map(({ kind, designation, designation_group_id, attempt }: Reply) => [
      ...[kind, designation?.index, designation_group_id, attempt],
    ]),
    [
      [undefined, 0, group, 1],
      [undefined, 1, group, 1],
      ['coordinator', undefined, group, 1],
    ],
  )
  const again = (await fanOut('k', 'one', 'two')).body
  assert.equal([again.designation_group_id, again.runs.length], [group, 2], 'repeated, it makes no other coordinator')
  await end(world, runs[0].id, 'complete')
  await end(world, runs[1].id, 'complete')
  assert.is((await facts(world, task)).status, 'ready', 'the coordinator has not ended')
  await end(world, runs[2].id, 'fail')
  const now = await facts(world, task)
  assert.equal([now.status, /the coordinator: no network/.test(now.reason)], ['needs_attention', true], now.reason)
  assert.is((await world.post(`/api/tasks/${task}/recover`)).status, 200)
  const [next] = await openRuns(world, task)
  assert.equal(
    [next?.kind, next?.designation_group_id, next?.attempt, next?.previous_run_id],
    ['coordinator', group, 2, runs[2].id],
  )
  await end(world, next?.id, 'complete')
  assert.is((await facts(world, task)).status, 'completed')
})

test('the run of a task with a coordinator is the coordinator, and its fan-out joins it', async ({ world }) => {
  const { task, at, fanOut } = await guided(world, { agent_name: 'boss' })
  const { run } = (await world.post(`${at}/start`)).body
  assert.equal([run.kind, run.designation], ['coordinator', undefined])
  const other = world.agent({ agentName: 'ada' })
  assert.is((await other.claim({ run_id: run.id })).status, 204, 'it is for the agent of the profile')
  const boss = world.agent({ agentName: 'boss' })
  const divide = async ({ id }: typeof boss): Promise<Reply> => {
    const actor = { ...look.kernel().actor, onBehalfOf: { kind: 'agent_session', id } }
    const body = { designations: [{ brief: 'one' }, { brief: 'two' }], idempotency_key: 'first' }
    const reply = await look.kernel().needs.request({ method: 'POST', url: `${at}/runs/fan-out`, body }, actor)
    return { status: reply.status, body: JSON.parse(reply.body) }
  }
  const early = await divide(boss)
  assert.equal([early.status, early.body.code], [403, 'task_fan_out_refused'])
  assert.is((await boss.claim({ run_id: run.id })).status, 200)
  assert.is((await boss.act('start', run.id)).status, 200)
  assert.is((await divide(other)).body.code, 'task_fan_out_refused')
  const first = (await divide(boss)).body
  const second = (await fanOut('second', 'three')).body
  assert.equal(
    [...first.runs, ...second.runs].map(({ kind, designation, designation_group_id }: Reply) => [
      ...[kind, designation.index, designation_group_id],
    ]),
    [0, 1, 2].map(index => [undefined, index, run.designation_group_id]),
  )
  const over = await fanOut('third', 'four', 'five', 'six')
  assert.equal([over.status, over.body.code], [422, 'task_invalid'])
  assert.match(over.body.error, 'has 3 runs already')
  for (const { id } of [...first.runs, ...second.runs]) await end(world, id, 'complete')
  assert.is((await facts(world, task)).status, 'in_progress')
  assert.is((await boss.act('complete', run.id, {})).status, 200)
  assert.is((await facts(world, task)).status, 'completed')
})

test('a changed profile changes the agents of a queued coordinator and of its workers separately', async ({
  world,
}) => {
  const { at, fanOut } = await guided(world, { agent_name: 'boss' })
  const { runs } = (await fanOut('k', 'one')).body
  const [worker, coordinator] = runs.map(({ id }: Reply) => id)
  const { status } = await world.request('PUT', `${at}/execution-profile`, {
    ...{ worker: { mode: 'select', agent_name: 'ada' }, coordinator: { mode: 'guided', agent_name: 'eve' } },
  })
  assert.is(status, 200)
  const claim = async (agentName: string, run_id: string) => (await world.agent({ agentName }).claim({ run_id })).status
  assert.equal([await claim('boss', coordinator), await claim('ada', coordinator)], [204, 204])
  assert.equal([await claim('eve', worker), await claim('ada', worker)], [204, 200])
  assert.is(await claim('eve', coordinator), 200)
})

test.run()
