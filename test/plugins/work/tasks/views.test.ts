import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Reply } from '../../../harness/kernel.js'
import { type Scene, scene } from './scene.js'

const MINUTE = 60_000
const test = suite<{ world: Scene }>('task views')

/** The commands that answer pending requests, by session. */
const asks = new Map<string, string>()

test.before.each(async context => {
  context.world = await scene({ asks })
})
test.after.each(({ world }) => world.close())

const inbox = async (world: Scene, query = ''): Promise<Reply> =>
  (await world.request('GET', `/api/observe/tasks/inbox${query}`)).body.inbox
const lanes = async (world: Scene, query = ''): Promise<Record<string, string[]>> =>
  Object.fromEntries(
    (await inbox(world, query)).groups.map((group: Reply) => [
      group.lane,
      group.items.map((item: Reply) => item.task.title),
    ]),
  )
const dashboard = async (world: Scene, query = ''): Promise<Reply> =>
  (await world.request('GET', `/api/observe/tasks/dashboard${query}`)).body.dashboard

test('the timeline lists the events of a task in order and continues after a position', async ({ world }) => {
  const { task, run } = await world.queued()
  const ada = world.agent()
  await ada.claim()
  await ada.act('complete', run)
  const { timeline } = (await world.request('GET', `/api/tasks/${task}/timeline`)).body
  assert.equal(
    timeline.map((entry: Reply) => entry.event_type),
    [
      'task.created',
      'task.status_changed',
      'task.run_enqueued',
      'task.run_claimed',
      'task.run_completed',
      'task.status_changed',
    ],
  )
  assert.equal(timeline[3].actor, { kind: 'agent_session', ref: ada.id })
  assert.is(timeline.at(-1).sequence, (await world.task(task)).task.latest_event_seq)
  const after = (
    await world.request('GET', `/api/tasks/${task}/timeline?after_sequence=${timeline[3].sequence}&limit=1`)
  ).body
  assert.equal(
    after.timeline.map((entry: Reply) => entry.event_type),
    ['task.run_completed'],
  )
})

test('the tree lists the descendants of a task with their depth', async ({ world }) => {
  const { task } = await world.queued()
  const child = (await world.post(`/api/tasks/${task}/children`, { title: 'child', scope: 'global' })).body.task.id
  await world.post(`/api/tasks/${child}/children`, { title: 'grandchild', scope: 'global' })
  const { tree } = (await world.request('GET', `/api/tasks/${child}/tree`)).body
  assert.equal(
    [tree.root.depth, tree.descendants.map((node: Reply) => [node.task.title, node.depth])],
    [0, [['grandchild', 1]]],
  )
  const whole = (await world.request('GET', `/api/tasks/${task}/tree`)).body.tree
  assert.equal(
    whole.descendants.map((node: Reply) => node.depth),
    [1, 2],
  )
})

test('an inspection shows why a task is not progressing and the next step', async ({ world }) => {
  const next = async (id: string) => (await world.request('GET', `/api/tasks/${id}/inspect`)).body.inspect.next_action
  const { task, run } = await world.queued({ max_attempts: 1 })
  const ada = world.agent()
  assert.match(await next(task), /svc task next/)
  await ada.claim()
  assert.is(await next(task), `wait for session ${ada.id}`)
  asks.set(ada.id, `svc session approve ${ada.id}`)
  assert.is(await next(task), `svc session approve ${ada.id}`)
  asks.delete(ada.id)
  await world.stop(ada, 'crashed')
  const { inspect } = (await world.request('GET', `/api/runs/${run}/inspect`)).body
  assert.equal(
    [inspect.next_action, inspect.bound_session.state],
    [`svc task run recover ${run} --reason <text>`, 'stopped'],
  )
  const shown = (await world.request('GET', `/api/task-runs/${run}`)).body.run
  assert.equal([shown.run.id, shown.task.id, shown.session.session_id], [run, task, ada.id])
  assert.is((await dashboard(world)).active_runs.items[0].health_status, 'needs_attention')
})

test('the backlog is in claim order', async ({ world }) => {
  const { run: low } = await world.queued({ priority: 'low' })
  const { run: high } = await world.queued({ priority: 'high' })
  const { task: paused } = await world.queued({ priority: 'urgent' })
  await world.post(`/api/tasks/${paused}/pause`, { reason: 'later' })
  const { backlog } = (await world.request('GET', '/api/scheduler/backlog')).body
  assert.equal([backlog.total, backlog.runs.map((entry: Reply) => entry.run.id)], [2, [high, low]])
  assert.is((await world.request('GET', '/api/scheduler/backlog?include_paused=true&limit=1')).body.backlog.total, 3)
})

test('a drain pauses claims and reports whether active runs have ended', async ({ world }) => {
  const { run } = await world.queued()
  const ada = world.agent()
  await ada.claim()
  const timed = (await world.post('/api/scheduler/drain', { timeout_seconds: 0 })).body
  assert.equal([timed.completed, timed.remaining_claims, timed.timed_out], [false, 1, true])
  assert.is(timed.scheduler.paused, true)
  await ada.act('complete', run)
  assert.is((await world.post('/api/scheduler/drain')).body.completed, true)
})

test('maintained totals match the table after every change', async ({ world }) => {
  const totals = async (query = '') =>
    (await world.request('GET', `/api/observe/tasks/dashboard${query}`)).body.dashboard.totals
  const same = async () => assert.equal(await totals(), await totals('?scope=global'))
  const create = async (more: object) =>
    (await world.post('/api/tasks', { title: 'w', scope: 'global', ...more })).body.task.id
  await same()
  const draft = await create({ draft: true })
  await same()
  await world.post(`/api/tasks/${draft}/publish`)
  await same()
  const agent = world.agent()
  const { run } = (await agent.claim()).body.claim
  await agent.act('start', run.id)
  await same()
  await agent.act('release', run.id)
  await world.post(`/api/tasks/${draft}/cancel`)
  await same()
  const other = await world.queued()
  await agent.claim()
  await agent.act('complete', other.run)
  await same()
  assert.is((await totals()).completed_tasks, 1)
  assert.is((await world.request('DELETE', `/api/tasks/${other.task}`)).status, 204)
  await same()
  assert.equal([(await totals()).completed_tasks, (await totals()).runs_total], [0, 1])
})

test('the dashboard counts tasks and runs and shows stuck runs', async ({ world }) => {
  const { run } = await world.queued()
  await world.queued()
  await world.post('/api/tasks', { title: 'to approve', scope: 'global', approval_policy: 'manual' })
  const ada = world.agent()
  await ada.claim({ run_id: run, lease_seconds: 3600 })
  const fresh = await dashboard(world)
  const { totals } = fresh
  assert.equal(
    [
      totals.tasks_total,
      totals.ready_tasks,
      totals.blocked_tasks,
      totals.awaiting_approval_tasks,
      totals.claimed_runs,
      totals.queued_runs,
    ],
    [3, 2, 1, 1, 1, 1],
  )
  assert.equal([fresh.health.status, fresh.health.stuck_runs, fresh.freshness.status], ['ok', 0, 'current'])
  await world.clock.advance(11 * MINUTE)
  const later = await dashboard(world)
  assert.equal([later.health.status, later.health.stuck_runs, later.queue.backlog_warning], ['degraded', 1, true])
  assert.is(later.freshness.status, 'stale')
  assert.equal(
    later.active_runs.items.map((item: Reply) => [item.run_id === run, item.stuck]),
    [
      [true, true],
      [false, false],
    ],
  )
  assert.is((await dashboard(world, '?scope=workspace')).totals.tasks_total, 0)
})

test('the inbox has each task in the first matching lane', async ({ world }) => {
  const operator = (await world.task((await world.queued({ title: 'nothing to do' })).task)).task.created_by
  await world.post('/api/tasks', { title: 'approve me', scope: 'global', approval_policy: 'manual' })
  const { task: blocked } = await world.queued({ title: 'blocked' })
  await world.post(`/api/tasks/${blocked}/blocks`, { kind: 'needs_input', reason: 'which colour?' })
  const { run } = await world.queued({ title: 'broken', priority: 'urgent' })
  const ada = world.agent()
  await ada.claim({ run_id: run })
  await ada.act('fail', run, { error: 'no network' })
  assert.equal(await lanes(world), {
    my_work: [],
    approvals: ['approve me'],
    failed_runs: ['broken'],
    blocked: ['blocked'],
    archived: [],
  })
  const all = await inbox(world)
  assert.equal([all.page.total, all.unread_total], [3, 3])
  assert.is(all.groups[3].items[0].blocking_reason, 'which colour?')
  assert.ok(operator.ref)
})

test('read, dismissed and archived marks apply until the next event of the task', async ({ world }) => {
  const { task } = await world.queued({ title: 'blocked' })
  const block = (reason: string) => world.post(`/api/tasks/${task}/blocks`, { kind: 'needs_input', reason })
  await block('a')
  assert.is((await world.post(`/api/tasks/${task}/triage/read`)).body.triage.read, true)
  assert.is((await inbox(world)).unread_total, 0)
  assert.is((await inbox(world, '?unread=true')).page.total, 0)
  await world.clock.advance(1)
  await block('b')
  assert.is((await inbox(world)).unread_total, 1)
  await world.post(`/api/tasks/${task}/triage/dismiss`)
  assert.is((await inbox(world)).page.total, 0)
  await world.clock.advance(1)
  await world.post(`/api/tasks/${task}/pause`, { reason: 'later' })
  assert.is((await inbox(world)).page.total, 1)
  await world.post(`/api/tasks/${task}/triage/archive`)
  assert.equal((await lanes(world)).archived, ['blocked'])
  assert.equal([(await inbox(world)).archived_total, (await inbox(world)).unread_total], [1, 0])
})

test('a heartbeat does not mark a read task as unread', async ({ world }) => {
  const { task, run } = await world.queued({ title: 'mine' })
  const ada = world.agent()
  await ada.claim()
  await world.post(`/api/tasks/${task}/blocks`, { kind: 'needs_input', reason: 'which colour?' })
  await world.post(`/api/tasks/${task}/triage/read`)
  const overview = async () => (await world.request('GET', '/api/tasks')).body.tasks[0]
  const before = await overview()
  await world.clock.advance(150_000)
  assert.is((await ada.act('heartbeat', run)).status, 200)
  const after = await overview()
  assert.is(after.last_activity_at, before.last_activity_at)
  assert.ok(after.latest_event_seq > before.latest_event_seq)
  assert.equal([(await inbox(world)).page.total, (await inbox(world)).unread_total], [1, 0])
  const { active_runs: active, freshness } = await dashboard(world)
  const now = new Date(world.clock.now()).toISOString()
  assert.equal([freshness.latest_activity_at, freshness.stale], [now, false])
  const { items } = active
  assert.equal(
    items.map((item: Reply) => item.last_activity_at),
    [now],
  )
  await ada.act('fail', run, { error: 'no network' })
  assert.is((await inbox(world)).unread_total, 1)
})

test('the newest 1000 events of each task are kept', async ({ world }) => {
  const { task, run } = await world.queued()
  const { run: other, task: quiet } = await world.queued()
  const [ada, bob] = [world.agent(), world.agent()]
  await ada.claim({ run_id: run })
  await bob.claim({ run_id: other })
  const events = async (of: string): Promise<string[]> =>
    (await world.request('GET', `/api/tasks/${of}/timeline?limit=1000`)).body.timeline.map(
      (entry: Reply) => entry.event_type,
    )
  while ((await events(task))[0] === 'task.created' && (await world.task(task)).summary.latest_event_seq < 1500)
    await Promise.all(Array.from({ length: 50 }, () => ada.act('heartbeat', run)))
  const kept = await events(task)
  assert.equal([kept.length, new Set(kept)], [1000, new Set(['task.run_lease_extended'])])
  await ada.act('complete', run)
  assert.is((await events(quiet))[0], 'task.created')
})

test('the inbox is paged, and a cursor is valid for its query only', async ({ world }) => {
  for (let n = 0; n < 5; n++) {
    await world.clock.advance(1)
    await world.post('/api/tasks', { title: `t${n}`, scope: 'global', approval_policy: 'manual' })
  }
  const seen: string[] = []
  let cursor = ''
  for (let pages = 0; pages < 3; pages++) {
    const page = await inbox(world, `?limit=2${cursor && `&cursor=${cursor}`}`)
    seen.push(...page.groups.flatMap((group: Reply) => group.items.map((item: Reply) => item.task.title)))
    cursor = page.page.next_cursor ?? ''
    if (pages === 0)
      assert.is((await world.request('GET', `/api/observe/tasks/inbox?lane=blocked&cursor=${cursor}`)).status, 400)
  }
  assert.equal(seen, ['t4', 't3', 't2', 't1', 't0'])
})

test.run()
