import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type Scene, scene } from './scene.js'

const test = suite<{ world: Scene }>('tasks')

test.before.each(async context => {
  context.world = await scene()
})
test.after.each(({ world }) => world.close())

const make = async (world: Scene, more: object = {}): Promise<string> =>
  (await world.post('/api/tasks', { title: 'work', scope: 'global', ...more })).body.task.id
const status = async (world: Scene, id: string): Promise<string> => (await world.task(id)).task.status
/** Does all that is queued. */
async function work(world: Scene, run?: string): Promise<void> {
  const agent = world.agent()
  const { claim } = (await agent.claim(run === undefined ? {} : { run_id: run })).body
  assert.is((await agent.act('complete', claim.run.id)).status, 200)
}

test('an invalid task is refused with the path of the invalid member', async ({ world }) => {
  const cases: readonly (readonly [object, number, RegExp])[] = [
    [{ title: ' ' }, 422, /title/],
    [{ title: 'x'.repeat(501) }, 422, /title/],
    [{ max_attempts: 11 }, 422, /max_attempts/],
    [{ priority: 'huge' }, 422, /priority/],
    [{ id: '../x' }, 422, /id/],
    [{ metadata: { text: 'x'.repeat(16 * 1024) } }, 413, /metadata/],
    [{ scope: 'workspace' }, 422, /workspace/],
    [{ scope: 'workspace', workspace: 'none' }, 404, /workspace/],
    [{ workspace: 'w' }, 422, /workspace/],
  ]
  for (const [body, code, text] of cases) {
    const reply = await world.post('/api/tasks', { title: 'work', scope: 'global', ...body })
    assert.is(reply.status, code, JSON.stringify(reply.body))
    assert.match(JSON.stringify(reply.body), text)
  }
  await make(world, { id: 'mine' })
  assert.is((await world.post('/api/tasks', { id: 'mine', title: 'work', scope: 'global' })).body.code, 'task_exists')
})

test('a user is recorded as human for every action over each transport', async ({ world }) => {
  const { task, run } = await world.queued({ title: 'mine', owner: { kind: 'human', ref: 'operator' } })
  const person = { kind: 'human', ref: 'operator' }
  const block = await world.post(`/api/tasks/${task}/blocks`, { kind: 'needs_input', reason: 'which?' })
  assert.equal(block.body.block.created_by, person)
  await world.post(`/api/tasks/${task}/pause`, { reason: 'later' })
  const { task: detail } = await world.task(task)
  assert.equal([detail.created_by, detail.paused_by, detail.origin.ref], [person, 'operator', 'operator'])
  const { body } = await world.request('GET', `/api/tasks/${task}/timeline`)
  assert.ok(body.timeline.length > 0)
  for (const { actor } of body.timeline) assert.equal(actor, person)
  assert.is((await world.post('/api/scheduler/pause', {})).body.scheduler.paused_by, 'operator')
  await world.post('/api/scheduler/resume', {})
  await world.post(`/api/tasks/${task}/resume`, {})
  const read = await world.post(`/api/tasks/${task}/triage/read`, {})
  assert.equal(read.body.triage.actor, person)
  const other = await world.queued({ title: 'owned', owner: person })
  const { inbox } = (await world.request('GET', '/api/observe/tasks/inbox?lane=my_work')).body
  assert.ok(JSON.stringify(inbox).includes(other.task), 'a task that a person owns is their work')
  assert.ok(run)
})

test('a draft has no runs until it is published', async ({ world }) => {
  const id = await make(world, { draft: true })
  assert.is((await world.post(`/api/tasks/${id}/start`)).status, 409)
  assert.is(await status(world, id), 'draft')
  const published = await world.post(`/api/tasks/${id}/publish`)
  assert.equal([published.body.task.status, published.body.run.status], ['ready', 'queued'])
  assert.is((await world.post(`/api/tasks/${id}/publish`)).status, 409)
})

test('a repeated start returns its run, even an ended one, and a new key is refused without attempts left', async ({
  world,
}) => {
  const { task, run } = await world.queued({ max_attempts: 1 })
  const again = await world.post(`/api/tasks/${task}/start`)
  assert.equal([again.body.run.id, again.body.existing_run], [run, true])
  assert.is((await world.post(`/api/tasks/${task}/start`, { idempotency_key: 'new' })).body.code, 'task_run_open')
  const other = await make(world)
  const key = { idempotency_key: `task.start.${task}` }
  assert.equal((await world.post(`/api/tasks/${other}/start`, key)).body.code, 'task_key_conflict')
  const ada = world.agent()
  await ada.claim()
  await ada.act('fail', run, { error: 'it is broken' })
  assert.is(await status(world, task), 'failed')
  assert.is((await world.post(`/api/tasks/${task}/start`, { idempotency_key: 'new' })).status, 409)
  const retried = await world.post(`/api/runs/${run}/retry`)
  assert.equal([retried.status, retried.body.run.attempt, retried.body.run.previous_run_id], [201, 2, run])
  await work(world)
  assert.is(await status(world, task), 'completed')
})

test('a failed run leaves a task ready while an attempt is left', async ({ world }) => {
  const { task, run } = await world.queued()
  const ada = world.agent()
  await ada.claim()
  assert.is((await ada.act('fail', run, {})).status, 422)
  await ada.act('fail', run, { error: 'no network' })
  const { task: row, runs } = await world.task(task)
  assert.equal([row.status, runs[0].error, runs[0].failure_kind], ['ready', 'no network', 'agent_reported'])
})

test('a task with auto-enqueue gets a run when its dependency completes', async ({ world }) => {
  const { task: first, run } = await world.queued()
  const second = await make(world, { auto_enqueue_on_ready: true })
  const added = await world.post(`/api/tasks/${second}/dependencies`, { depends_on_task_id: first })
  assert.equal([added.status, added.body.task.task.status], [200, 'blocked'])
  assert.equal(added.body.task.task.blocked_reasons, [{ source: 'dependency', depends_on_task_ids: [first] }])
  const cycle = await world.post(`/api/tasks/${first}/dependencies`, { depends_on_task_id: second })
  assert.equal([cycle.status, cycle.body.code], [409, 'task_cycle'])
  const itself = await world.post(`/api/tasks/${first}/dependencies`, { depends_on_task_id: first })
  assert.is(itself.body.code, 'task_cycle')
  await work(world, run)
  const waiting = world.agent().claim({ wait: true })
  assert.is((await waiting).body.claim.task.id, second)
})

test('a parent that depends on its children completes with them', async ({ world }) => {
  const root = await make(world)
  const child = async (of: string) =>
    (await world.post(`/api/tasks/${of}/children`, { title: 'part', scope: 'global' })).body.task.id as string
  const middle = await child(root)
  const leaf = await child(middle)
  for (const on of [middle, leaf])
    assert.is((await world.post(`/api/tasks/${root}/dependencies`, { depends_on_task_id: on })).status, 200)
  assert.is(await status(world, root), 'blocked')
  await work(world, (await world.post(`/api/tasks/${leaf}/start`)).body.run.id)
  assert.equal([await status(world, middle), await status(world, root)], ['completed', 'completed'])
})

test('claims skip blocked tasks and follow the claim order', async ({ world }) => {
  const { run: low } = await world.queued({ priority: 'low' })
  await world.clock.advance(1)
  const { run: first } = await world.queued()
  await world.clock.advance(1)
  const { run: later } = await world.queued()
  const { task: blocked, run: urgent } = await world.queued({ priority: 'urgent' })
  await world.post(`/api/tasks/${blocked}/blocks`, { kind: 'needs_input', reason: 'which one?' })
  const claims = []
  for (let n = 0; n < 4; n++) claims.push((await world.agent().claim()).body?.claim.run.id)
  assert.equal(claims, [first, later, low, undefined])
  const [block] = (
    await world.kernel
      .inject({ method: 'GET', url: `/api/tasks/${blocked}/blocks` })
      .then(reply => JSON.parse(reply.body))
  ).blocks
  assert.is((await world.post(`/api/tasks/${blocked}/blocks/${block.id}/clear`, { note: 'the red one' })).status, 200)
  assert.is((await world.agent().claim({ priority_min: 40 })).body.claim.run.id, urgent)
})

test('a recurring block makes the task need attention until it is recovered', async ({ world }) => {
  const { task } = await world.queued()
  for (let n = 0; n < 3; n++) {
    const { block } = (await world.post(`/api/tasks/${task}/blocks`, { kind: 'capability', reason: 'no browser' })).body
    await world.post(`/api/tasks/${task}/blocks/${block.id}/clear`)
  }
  assert.is(await status(world, task), 'needs_attention')
  assert.is((await world.agent().claim()).status, 204)
  assert.is((await world.post(`/api/tasks/${task}/recover`, { note: 'has one now' })).body.task.status, 'ready')
  assert.is((await world.agent().claim()).status, 200)
})

test('a transient block expires', async ({ world }) => {
  const { task } = await world.queued()
  const until = new Date(world.clock.now() + 60_000).toISOString()
  const made = await world.post(`/api/tasks/${task}/blocks`, {
    kind: 'transient',
    reason: 'rate limit',
    expires_at: until,
  })
  assert.is(made.status, 201)
  assert.is((await world.agent().claim()).status, 204)
  await world.clock.advance(60_000)
  assert.is((await world.agent().claim()).status, 200)
})

test('a run cannot be claimed before its task is approved', async ({ world }) => {
  const id = await make(world, { approval_policy: 'manual', draft: true })
  const { run } = (await world.post(`/api/tasks/${id}/publish`)).body
  assert.is((await world.agent().claim({ run_id: run.id })).status, 204)
  assert.is((await world.post(`/api/tasks/${id}/start`)).body.code, 'task_approval_pending')
  assert.is(await status(world, id), 'blocked')
  const approved = await world.post(`/api/tasks/${id}/approve`)
  assert.equal([approved.status, approved.body.run.id, approved.body.task.status], [201, run.id, 'ready'])
  assert.is((await world.agent().claim()).status, 200)
  const other = await make(world, { approval_policy: 'manual' })
  assert.is((await world.post(`/api/tasks/${other}/reject`)).body.task.approval_state, 'rejected')
  assert.is((await world.post(`/api/tasks/${other}/approve`)).status, 409)
  const started = await world.post(`/api/tasks/${other}/start`)
  assert.equal([started.status, started.body.code], [409, 'task_conflict'])
  assert.match(started.body.error, 'was rejected')
})

test('a pause applies to descendants and does not interrupt active runs', async ({ world }) => {
  const { task: parent } = await world.queued()
  const { task: child } = (await world.post(`/api/tasks/${parent}/children`, { title: 'part', scope: 'global' })).body
  const { run } = (await world.post(`/api/tasks/${child.id}/start`)).body
  const ada = world.agent()
  await ada.claim({ run_id: run.id })
  await world.post(`/api/tasks/${parent}/pause`, { reason: 'wait a moment' })
  const paused = (await world.task(child.id)).task
  assert.equal([paused.effective_paused, paused.paused, paused.paused_by_task_id], [true, false, parent])
  assert.is((await world.agent().claim()).status, 204)
  assert.is((await ada.act('heartbeat', run.id)).status, 200)
  await world.post(`/api/tasks/${parent}/resume`)
  assert.is((await world.agent().claim()).status, 200)
})

test('a parent completes when all its children are completed', async ({ world }) => {
  const parent = await make(world)
  const children = []
  for (const title of ['a', 'b']) {
    const { task } = (await world.post(`/api/tasks/${parent}/children`, { title, scope: 'global' })).body
    await world.post(`/api/tasks/${task.id}/start`)
    children.push(task.id)
  }
  await work(world)
  assert.is(await status(world, parent), 'ready')
  await work(world)
  assert.is(await status(world, parent), 'completed')
  assert.is((await world.kernel.inject({ method: 'DELETE', url: `/api/tasks/${parent}` })).status, 409)
})

test('a hierarchy is limited to 8 levels, 64 children and 32 dependencies per task', async ({ world }) => {
  let at = await make(world)
  for (let level = 2; level <= 8; level++)
    at = (await world.post(`/api/tasks/${at}/children`, { title: 'below', scope: 'global' })).body.task.id
  assert.is(
    (await world.post(`/api/tasks/${at}/children`, { title: 'below', scope: 'global' })).body.code,
    'task_graph_limit',
  )
  const many = await make(world)
  for (let n = 0; n < 64; n++)
    await world.post(`/api/tasks/${many}/children`, { title: 'below', scope: 'global', id: `c${n}` })
  assert.is(
    (await world.post(`/api/tasks/${many}/children`, { title: 'b', scope: 'global' })).body.code,
    'task_graph_limit',
  )
  const one = await make(world)
  for (let n = 0; n < 32; n++) await world.post(`/api/tasks/${one}/dependencies`, { depends_on_task_id: `c${n}` })
  assert.is(
    (await world.post(`/api/tasks/${one}/dependencies`, { depends_on_task_id: 'c40' })).body.code,
    'task_graph_limit',
  )
})

test('a fan-out queues one run for each part', async ({ world }) => {
  const id = await make(world)
  const designations = ['the tests', 'the code', 'the docs'].map(brief => ({ brief }))
  assert.is((await world.post(`/api/tasks/${id}/runs/fan-out`, { designations })).status, 422)
  const body = { designations, idempotency_key: 'all' }
  const made = await world.post(`/api/tasks/${id}/runs/fan-out`, body)
  assert.is(made.status, 201, JSON.stringify(made.body))
  assert.equal(
    made.body.runs.map((run: { designation: unknown }) => run.designation),
    [
      { index: 0, brief: 'the tests' },
      { index: 1, brief: 'the code' },
      { index: 2, brief: 'the docs' },
    ],
  )
  const again = await world.post(`/api/tasks/${id}/runs/fan-out`, body)
  assert.equal(again.body, made.body)
  assert.is((await world.post(`/api/tasks/${id}/start`)).body.code, 'task_run_open')
  const six = { designations: Array.from({ length: 6 }, () => ({ brief: 'x' })), idempotency_key: 'six' }
  assert.is((await world.post(`/api/tasks/${id}/runs/fan-out`, six)).status, 422)
  await work(world)
  await work(world)
  assert.is(await status(world, id), 'ready')
  await work(world)
  assert.is(await status(world, id), 'completed')
})

test('canceling a task cancels its descendants and their runs', async ({ world }) => {
  const { task, run } = await world.queued()
  const { task: child } = (await world.post(`/api/tasks/${task}/children`, { title: 'part', scope: 'global' })).body
  const ada = world.agent()
  await ada.claim()
  await world.post(`/api/tasks/${task}/cancel`, { reason: 'not needed' })
  assert.equal([await status(world, task), await status(world, child.id)], ['canceled', 'canceled'])
  assert.is((await ada.act('complete', run)).body.code, 'AUTONOMY_NO_ACTIVE_LEASE')
  assert.is((await ada.claim()).status, 204)
})

test('an operator can force a claimed run within the rate limit', async ({ world }) => {
  const { task, run } = await world.queued()
  const ada = world.agent()
  for (let n = 0; n < 10; n++) {
    await ada.claim()
    assert.is((await world.post(`/api/runs/${run}/release`)).body.run?.status, 'queued')
  }
  await ada.claim()
  assert.equal((await world.post(`/api/runs/${run}/release`)).status, 429)
  await world.clock.advance(60_000)
  assert.is((await world.post(`/api/runs/${run}/fail`, { reason: ' ' })).status, 422)
  const failed = await world.post(`/api/runs/${run}/fail`, { reason: 'enough' })
  assert.equal([failed.body.run.status, failed.body.run.failure_kind], ['failed', 'operator_forced'])
  assert.is((await ada.act('heartbeat', run)).body.code, 'AUTONOMY_NO_ACTIVE_LEASE')
  assert.is(await status(world, task), 'ready')
  const bulk = await world.post('/api/runs/bulk/fail', { run_ids: [run, 'trun_none'], reason: 'x' })
  assert.equal(
    bulk.body.results.map(({ ok }: { ok: boolean }) => ok),
    [false, false],
  )
})

test('a completion with tasks that the session did not create is refused and the run stays open', async ({ world }) => {
  const { task, run } = await world.queued()
  const ada = world.agent()
  await ada.claim()
  const refused = await ada.act('complete', run, { created_task_ids: [task, 'task_none'] })
  assert.equal([refused.status, refused.body.code], [409, 'AUTONOMY_CREATED_TASKS_UNKNOWN'])
  const { events } = await world.task(task)
  assert.is(events.at(-1).event_type, 'task.completion.hallucination_blocked')
  assert.is((await ada.act('complete', run, { result: 'x'.repeat(64 * 1024) })).status, 422)
  assert.is((await ada.act('complete', run)).status, 200)
})

test('a task with an owner can only be claimed by the owner', async ({ world }) => {
  const ada = world.agent()
  const { run } = await world.queued({ owner: { kind: 'agent_session', ref: ada.id } })
  await world.queued({ owner: { kind: 'human', ref: 'operator' } })
  assert.is((await world.agent().claim()).status, 204)
  assert.is((await ada.claim()).body.claim.run.id, run)
})

test('a workspace has at most 16 active runs', async ({ world }) => {
  for (let n = 0; n < 17; n++) await world.queued({ scope: 'workspace', workspace: world.workspace })
  for (let n = 0; n < 16; n++) assert.is((await world.agent().claim({ scope: 'workspace' })).status, 200)
  const full = await world.agent().claim({ workspace_id: world.workspace })
  assert.equal([full.status, full.body.code], [409, 'AUTONOMY_WORKSPACE_FULL'])
  const foreign = await world.agent().claim({ workspace_id: 'ws_other' })
  assert.equal([foreign.status, foreign.body.code], [403, 'identity_unauthorized'])
})

test('a claim that waits for a place in its workspace gets it when another run ends in any way', async ({ world }) => {
  for (let n = 0; n < 20; n++) await world.queued({ scope: 'workspace', workspace: world.workspace })
  const holders: { agent: ReturnType<typeof world.agent>; run: string }[] = []
  for (let n = 0; n < 16; n++) {
    const agent = world.agent()
    holders.push({ agent, run: (await agent.claim({ scope: 'workspace' })).body.claim.run.id })
  }
  const ends = [
    ({ agent, run }: (typeof holders)[number]) => agent.act('complete', run),
    ({ agent, run }: (typeof holders)[number]) => agent.act('fail', run, { error: 'no' }),
    ({ run }: (typeof holders)[number]) => world.post(`/api/task-runs/${run}/cancel`),
    ({ run }: (typeof holders)[number]) => world.post(`/api/runs/${run}/fail`, { reason: 'no' }),
  ]
  // No time passes on the clock of the daemon: nothing is found by a later look.
  for (const [n, end] of ends.entries()) {
    const waiting = world.agent().claim({ scope: 'workspace', wait: true })
    await world.pass(0)
    assert.is((await end(holders[n]!)).status, 200, `end ${n}`)
    assert.is((await waiting).status, 200, `after end ${n}`)
  }
})

test('a leased run is started only by its holder', async ({ world }) => {
  const { run } = await world.queued()
  const ada = world.agent()
  await ada.claim({ run_id: run })
  const refused = await world.post(`/api/task-runs/${run}/start`)
  assert.equal([refused.status, refused.body.code], [409, 'task_run_leased'])
  assert.is((await ada.act('start', run)).status, 200)
})

test('a run attached to a session by a user is starting, as shown in its timeline', async ({ world }) => {
  const { task, run } = await world.queued()
  assert.is((await world.post(`/api/task-runs/${run}/attach-session`, { session_id: world.agent().id })).status, 200)
  const { timeline } = (await world.request('GET', `/api/tasks/${task}/timeline`)).body
  const types: string[] = timeline.map(({ event_type: type }: { event_type: string }) => type)
  assert.equal(
    types.filter(type => /run_(starting|session_bound)/.test(type)),
    ['task.run_starting', 'task.run_session_bound'],
  )
})

test('a transient block must end in the future', async ({ world }) => {
  const { task } = await world.queued()
  const block = { kind: 'transient', reason: 'the network', expires_at: '2020-01-01T00:00:00Z' }
  const { status, body } = await world.post(`/api/tasks/${task}/blocks`, block)
  assert.equal([status, body.code], [422, 'task_invalid'])
  assert.match(body.error, /expires_at: must be in the future/)
})

test('an invalid query about one task is unprocessable', async ({ world }) => {
  const { task } = await world.queued()
  for (const url of ['runs?limit=-1', 'timeline?limit=-1', 'stream?after_sequence=-1'])
    assert.is((await world.request('GET', `/api/tasks/${task}/${url}`)).status, 422, url)
})

test('a draining daemon queues and claims nothing, and lease holders continue', async ({ world }) => {
  const { task, run } = await world.queued()
  await world.queued()
  const ada = world.agent()
  await ada.claim({ run_id: run })
  await world.post('/api/drain')
  assert.is((await world.agent().claim()).status, 503)
  assert.is((await world.post(`/api/tasks/${task}/start`, { idempotency_key: 'x' })).status, 503)
  assert.is((await ada.act('heartbeat', run)).status, 200)
  assert.is((await ada.act('complete', run)).status, 200)
})

test('the list is filtered and paged, and a cursor is valid for its query only', async ({ world }) => {
  for (let n = 0; n < 5; n++) {
    await world.clock.advance(1)
    await make(world, { title: `part ${n}`, priority: n % 2 ? 'high' : 'low' })
  }
  await make(world, { draft: true, title: 'a draft' })
  const list = async (query: string) => (await world.request('GET', `/api/tasks?${query}`)).body
  const first = await list('limit=2')
  assert.equal([first.page.total, first.page.has_more, first.tasks.length], [5, true, 2])
  assert.is(first.tasks[0].title, 'part 4')
  const second = await list(`limit=2&cursor=${first.page.next_cursor}`)
  assert.equal(
    second.tasks.map(({ title }: { title: string }) => title),
    ['part 2', 'part 1'],
  )
  assert.is((await list(`limit=2&status=ready&cursor=${first.page.next_cursor}`)).code, 'invalid_cursor')
  assert.equal((await list('priority=high&sort=priority')).tasks.length, 2)
  assert.equal((await list('query=PART%203')).tasks.length, 1)
  assert.equal(first.facets.statuses, [{ status: 'ready', count: 5 }])
})

test('an operator completes runs without a lease, and only the holder completes leased runs', async ({ world }) => {
  const { task, run } = await world.queued()
  const ada = world.agent()
  assert.is((await world.post(`/api/task-runs/${run}/start`)).status, 409)
  assert.is(
    (await world.post(`/api/task-runs/${run}/attach-session`, { session_id: ada.id })).body.run.status,
    'starting',
  )
  assert.is((await world.post(`/api/task-runs/${run}/start`)).body.run.status, 'running')
  assert.is((await world.post(`/api/task-runs/${run}/complete`, { result: 1 })).body.run.status, 'completed')
  assert.is(await status(world, task), 'completed')
  const held = await world.queued()
  const eve = world.agent()
  await eve.claim()
  await eve.act('start', held.run)
  assert.is((await world.post(`/api/task-runs/${held.run}/complete`)).body.code, 'task_run_leased')
  assert.is((await world.post(`/api/task-runs/${held.run}/cancel`)).body.run.status, 'canceled')
})

test('a paused scheduler stops claims and stays paused after a restart', async ({ world }) => {
  await world.queued()
  assert.is((await world.post('/api/scheduler/pause', { reason: 'night' })).body.scheduler.paused_reason, 'night')
  const after = await world.killed()
  assert.is((await after.agent().claim()).status, 204)
  await after.post('/api/scheduler/resume')
  assert.is((await after.agent().claim()).status, 200)
  await after.close()
})

test.run()
