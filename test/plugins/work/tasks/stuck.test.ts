import { rm } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Checks } from '../../../../plugins/desk/daemon/api.js'
import { InboxSources } from '../../../../plugins/work/sessions/api.js'
import { probe } from '../../../../testing/traces.js'
import { type Reply, temporaryFolder } from '../../../harness/kernel.js'
import { type Scene, scene } from './scene.js'

const look = probe({})
const test = suite<{ world: Scene }>('stuck tasks')

test.before.each(async context => {
  context.world = await scene({ plugins: [look.plugin] })
})
test.after.each(({ world }) => world.close())

/** The items of `svc inbox`. */
const waiting = async (): Promise<Reply[]> => {
  const sources = look.kernel().collect(InboxSources)
  return (await Promise.all(sources.map(({ entry }) => entry.read()))).flat()
}
const inspect = async (world: Scene, url: string): Promise<Reply> =>
  (await world.request('GET', `${url}/inspect`)).body.inspect
const board = async (world: Scene): Promise<Reply> =>
  (await world.request('GET', '/api/observe/tasks/dashboard')).body.dashboard

/** A task with two runs side by side, each held by a session. */
async function fannedOut(world: Scene) {
  const { task } = (await world.post('/api/tasks', { title: 'two parts', scope: 'global' })).body
  const designations = [{ brief: 'one' }, { brief: 'two' }]
  await world.post(`/api/tasks/${task.id}/runs/fan-out`, { designations, idempotency_key: 'k' })
  const holders = [world.agent(), world.agent()] as const
  const runs: string[] = []
  for (const holder of holders) {
    const run = (await holder.claim()).body.claim.run.id
    await holder.act('start', run)
    runs.push(run)
  }
  return { id: task.id as string, holders, runs: runs as [string, string] }
}

test('a run that needs attention is in the inbox while another run of its task is active', async ({ world }) => {
  const { id, holders, runs } = await fannedOut(world)
  await world.stop(holders[0], 'crashed')
  assert.is((await world.task(id)).task.status, 'in_progress')
  const items = await waiting()
  assert.equal(
    items.map(({ task_id, task_run_id, kind, command }) => [task_id, task_run_id, kind, command]),
    [[id, runs[0], 'attention', `svc task run recover ${runs[0]} --reason <text>`]],
  )
  assert.match(items[0].title, /^two parts: the agent process of session .* exited unexpectedly$/)
})

test('a fan-out is not completed while one of its parts needs attention', async ({ world }) => {
  const { id, holders, runs } = await fannedOut(world)
  await world.stop(holders[0], 'crashed')
  await holders[1].act('complete', runs[1])
  const stuck = (await world.task(id)).task
  assert.equal([stuck.status, stuck.closed_at ?? null], ['needs_attention', null])
  assert.is((await inspect(world, `/api/tasks/${id}`)).next_action, `svc task run recover ${runs[0]} --reason <text>`)
  await world.post(`/api/tasks/${id}/recover`, { note: 'again' })
  const again = world.agent()
  const run = (await again.claim()).body.claim.run.id
  await again.act('start', run)
  await again.act('complete', run)
  assert.is((await world.task(id)).task.status, 'completed')
})

test('each run that needs attention keeps its own reason after another run of the task is recovered', async ({
  world,
}) => {
  const { holders, runs } = await fannedOut(world)
  for (const holder of holders) await world.stop(holder, 'crashed')
  assert.equal((await waiting()).map(item => item.task_run_id).sort(), [...runs].sort())
  await world.post(`/api/runs/${runs[0]}/recover`, { reason: 'killed by hand' })
  const [item, ...others] = await waiting()
  assert.equal([item?.task_run_id, others], [runs[1], []])
  assert.ok(item?.title.includes(holders[1].id), item?.title)
})

test('a completed task that needs attention stays in the inbox until it is recovered', async ({ world }) => {
  const { task: id, run } = await world.queued()
  const holder = world.agent()
  await holder.claim({ run_id: run })
  await holder.act('complete', run)
  const { review_id: review } = (
    await world.post(`/api/task-runs/${run}/reviews`, {
      run_id: run,
      task_id: id,
      review_round: 3,
      deadline_at: new Date(world.clock.now() + 3_600_000).toISOString(),
    })
  ).body.review
  const verdict = { outcome: 'rejected', confidence: 1, reason: 'no tests', delivery_id: 'd1' }
  const judged = await world.post(`/api/task-reviews/${review}/verdict`, { run_id: run, verdict })
  assert.equal([judged.status, judged.body.circuit_opened], [200, true])
  assert.is((await world.task(id)).task.status, 'completed')
  const waitingItems = (await waiting()).map(({ task_id, title, command }) => [task_id, title, command])
  assert.equal(waitingItems, [[id, 'work: review_rejected: no tests', `svc task recover ${id}`]])
  const { why, next_action: next } = await inspect(world, `/api/tasks/${id}`)
  assert.equal([why, next], ['review_rejected: no tests', `svc task recover ${id}`])
  await world.post(`/api/tasks/${id}/recover`, { note: 'good enough' })
  assert.equal(await waiting(), [])
  assert.is((await inspect(world, `/api/tasks/${id}`)).next_action, 'none')
})

test('canceling a run that needs attention clears the mark of its task', async ({ world }) => {
  const { id, holders, runs } = await fannedOut(world)
  for (const holder of holders) await world.stop(holder, 'crashed')
  await world.post(`/api/task-runs/${runs[0]}/cancel`, { reason: 'not needed' })
  assert.equal([(await world.task(id)).task.needs_attention, (await waiting()).length], [true, 1])
  await world.post(`/api/task-runs/${runs[1]}/cancel`, { reason: 'not needed' })
  assert.equal([(await world.task(id)).task.needs_attention, await waiting()], [false, []])
})

test('a task whose last attempt needs attention has not failed', async ({ world }) => {
  const { task } = (await world.post('/api/tasks', { title: 'work', scope: 'global', max_attempts: 2 })).body
  let { run } = (await world.post(`/api/tasks/${task.id}/start`)).body
  for (const attempt of [1, 2]) {
    const holder = world.agent()
    await holder.claim()
    await world.stop(holder, 'crashed')
    assert.equal([run.attempt, (await world.task(task.id)).task.status], [attempt, 'needs_attention'])
    ;({ run } = (await world.post(`/api/runs/${run.id}/recover`, { reason: 'killed by hand' })).body)
  }
  assert.equal([run.attempt, (await world.task(task.id)).task.status], [3, 'ready'])
})

test('inspecting a task shows the run that needs attention, not the newest run', async ({ world }) => {
  const { id, holders, runs } = await fannedOut(world)
  await world.stop(holders[0], 'crashed')
  const seen = await inspect(world, `/api/tasks/${id}`)
  assert.equal(
    [seen.current_run.run_id, seen.next_action],
    [runs[0], `svc task run recover ${runs[0]} --reason <text>`],
  )
  assert.match(seen.why, /exited unexpectedly/)
  const { why, next_action: next } = await world.task(id)
  assert.equal([why, next], [seen.why, seen.next_action], 'the detail says the same')
})

test('the board counts runs that need attention and shows the reason and next step of each', async ({ world }) => {
  const { id, holders, runs } = await fannedOut(world)
  await world.stop(holders[0], 'crashed')
  const seen = await board(world)
  assert.equal([seen.totals.needs_attention_runs, seen.totals.needs_attention_tasks], [1, 0])
  const [stuck, working] = seen.active_runs.items
  const { designation } = await world.run(runs[0], id)
  assert.equal(
    [stuck.run_id, stuck.part, stuck.next_action],
    [runs[0], designation.brief, `svc task run recover ${runs[0]} --reason <text>`],
  )
  assert.match(stuck.why, /exited unexpectedly/)
  assert.equal([working.agent_name, working.why, working.next_action], ['ada', undefined, undefined])
  await world.post('/api/scheduler/pause')
  const { run } = await world.queued()
  const queued = (await board(world)).active_runs.items.find((item: Reply) => item.run_id === run)
  assert.equal([queued.why, queued.next_action], ['the scheduler is paused', 'svc scheduler resume'])
})

test('inspecting a blocked task shows the reason and the next command', async ({ world }) => {
  const create = async (more: object): Promise<string> =>
    (await world.post('/api/tasks', { title: 'work', scope: 'global', ...more })).body.task.id
  const step = async (id: string) => {
    const { why, next_action: next } = await inspect(world, `/api/tasks/${id}`)
    return [why, next]
  }
  const first = await create({ title: 'Write the notes' })
  const second = await create({})
  await world.post(`/api/tasks/${second}/dependencies`, { depends_on_task_id: first })
  assert.equal(await step(second), [`waiting for "Write the notes" (${first}, ready)`, `wait for ${first}`])
  await world.post(`/api/tasks/${first}/cancel`)
  assert.is((await step(second))[1], `svc task dependency remove ${second} ${first}`)

  const parent = await create({ title: 'Release' })
  await world.post(`/api/tasks/${parent}/children`, { title: 'child', scope: 'global' })
  assert.equal(await step(parent), ['waiting for 1 child task to complete', `svc task tree ${parent}`])

  const approved = await create({ approval_policy: 'manual' })
  assert.equal(await step(approved), ['waiting for approval', `svc task approve ${approved}`])
  await world.post(`/api/tasks/${approved}/reject`)
  // Approving a rejected task fails, so the next step has to be another command.
  assert.equal(await step(approved), ['approval rejected', `svc task cancel ${approved}`])
  assert.is((await world.post(`/api/tasks/${approved}/cancel`)).status, 200)

  const blocked = await create({})
  const { block } = (await world.post(`/api/tasks/${blocked}/blocks`, { kind: 'needs_input', reason: 'which?' })).body
  assert.equal(await step(blocked), ['blocked (needs_input): which?', `svc task unblock ${blocked} ${block.id}`])

  const paused = await create({})
  await world.post(`/api/tasks/${paused}/pause`, { reason: 'until Monday' })
  assert.equal(await step(paused), ['paused: until Monday', `svc task resume ${paused}`])
})

test('a recovered run keeps its error, and the timeline has the reason for the recovery', async ({ world }) => {
  const { id, holders, runs } = await fannedOut(world)
  await world.stop(holders[0], 'crashed')
  const { error } = await world.run(runs[0], id)
  const { previous_run: before } = (await world.post(`/api/runs/${runs[0]}/recover`, { reason: 'by hand' })).body
  assert.equal([before.status, before.failure_kind, before.error], ['failed', 'superseded', error])
  const { timeline } = (await world.request('GET', `/api/tasks/${id}/timeline`)).body
  const notes = (type: string) =>
    timeline.filter((entry: Reply) => entry.event_type === type).map((entry: Reply) => entry.note)
  assert.equal(notes('task.run_recovered_from_attention'), ['by hand'])
  assert.ok(notes('task.status_changed').includes('ready -> in_progress'))
})

test('a queued run of a removed workspace waits for no session: its task is to be canceled', async ({ world }) => {
  const root_dir = await temporaryFolder('removed')
  const { workspace } = (await world.post('/api/workspaces', { root_dir })).body
  const { task } = await world.queued({ scope: 'workspace', workspace: workspace.id })
  assert.match((await inspect(world, `/api/tasks/${task}`)).next_action, 'wait for a session')
  assert.is((await world.request('DELETE', `/api/workspaces/${workspace.id}`)).status, 204)
  const seen = await inspect(world, `/api/tasks/${task}`)
  assert.is(seen.next_action, `svc task cancel ${task}`)
  assert.match(JSON.stringify(seen), `its workspace ${workspace.id} was removed`)
  await rm(root_dir, { recursive: true })
})

test('the timeline of a task reports that its dependency was deleted', async ({ world }) => {
  const made = async (title: string) => (await world.post('/api/tasks', { title, scope: 'global' })).body.task.id
  const [first, second] = [await made('first'), await made('second')]
  await world.post(`/api/tasks/${second}/dependencies`, { depends_on_task_id: first })
  assert.is((await world.task(second)).task.status, 'blocked')
  assert.is((await world.request('DELETE', `/api/tasks/${first}`)).status, 204)
  assert.is((await world.task(second)).task.status, 'ready')
  const timeline = (await world.request('GET', `/api/tasks/${second}/timeline`)).body
  assert.match(JSON.stringify(timeline), /task\.dependency_removed/)
})

test('the next step of an error contains the task id', async ({ world }) => {
  const { task } = (await world.post('/api/tasks', { title: 'a', scope: 'global' })).body
  const child = (await world.post(`/api/tasks/${task.id}/children`, { title: 'b', scope: 'global' })).body.task
  const nextOf = async (reply: Promise<Reply>) => (await reply).body.details.next
  assert.is(await nextOf(world.request('DELETE', `/api/tasks/${task.id}`)), `svc task tree ${task.id}`)
  assert.is(await nextOf(world.post(`/api/tasks/${child.id}/publish`)), `svc task get ${child.id}`)
  const other = (await world.post('/api/tasks', { title: 'c', scope: 'global' })).body.task
  await world.post(`/api/tasks/${other.id}/dependencies`, { depends_on_task_id: child.id })
  const cycle = { depends_on_task_id: other.id }
  assert.is(await nextOf(world.post(`/api/tasks/${child.id}/dependencies`, cycle)), `svc task get ${child.id}`)
})

test('the doctor message uses singular and plural correctly', async ({ world }) => {
  await world.queued()
  const [check] = look
    .kernel()
    .collect(Checks)
    .filter(({ entry }) => entry.id === 'tasks')
  const items = (await check?.entry.run(AbortSignal.timeout(60_000) as never)) as readonly { message: string }[]
  assert.ok(
    items.some(({ message }) => message === '1 queued run, 0 active claims'),
    JSON.stringify(items),
  )
})

test('the runs of all tasks are listed in pages, newest first, with task titles', async ({ world }) => {
  const made: string[] = []
  for (const title of ['first', 'second', 'third']) made.unshift((await world.queued({ title })).run)
  const list = async (query: string) => (await world.request('GET', `/api/task-runs${query}`)).body
  const page = await list('?limit=2')
  assert.equal(
    page.runs.map((run: Reply) => [run.id, run.task_title]),
    [
      [made[0], 'third'],
      [made[1], 'second'],
    ],
  )
  assert.equal([page.page.total, page.page.has_more], [3, true])
  const rest = await list(`?limit=2&cursor=${page.page.next_cursor}`)
  assert.equal([rest.runs.map((run: Reply) => run.id), rest.page.has_more], [[made[2]], false])
  assert.is((await list(`?status=queued&limit=2&cursor=${page.page.next_cursor}`)).code, 'invalid_cursor')
  const ada = world.agent()
  await ada.claim({ run_id: made[1] })
  const claimed = await list('?status=claimed')
  assert.equal([claimed.runs.map((run: Reply) => run.id), claimed.page.total], [[made[1]], 1])
  assert.is((await list('?limit=0')).code, 'invalid_query')
})

test.run()
