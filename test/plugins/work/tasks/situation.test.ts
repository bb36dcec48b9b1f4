import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { configuration, selfService, settings, sidecars, tasks } from '../../../../plugins/index.js'
import { openWorld, type World } from '../../../fixtures/session-world.js'
import { validateReply } from '../../../harness/contract.js'
import type { Reply } from '../../../harness/kernel.js'

const SUMMARY = 300
const BODY = 1024
const orchestration = {
  summary_max_bytes: SUMMARY,
  context_body_max_bytes: BODY,
  context_prior_attempts: 2,
  context_recent_events: 6,
  default_max_runtime: '90s',
}
const test = suite<{ world: World }>('run context')

test.before.each(async context => {
  const world = await openWorld({
    config: { task: { orchestration } },
    plugins: [configuration, settings, sidecars, selfService, tasks],
  })
  await world.agent('ada')
  context.world = world
})
test.after.each(({ world }) => world.close())

/** A session, as an operator speaks for it. */
async function speaker(world: World) {
  const { id, at } = await world.session('ada')
  const headers = { 'x-service-session-id': id, 'x-service-agent': 'ada' }
  const send = async (method: string, url: string, body?: object): Promise<Reply> => {
    const reply = await world.kernel.kernel.inject({ method, url, headers, ...(body && { body }) })
    if (reply.status >= 300) throw new Error(`${method} ${url}: ${reply.status} ${reply.body}`)
    const parsed = JSON.parse(reply.body)
    assert.equal(validateReply(method, url, reply.status, parsed), [])
    return parsed
  }
  return {
    at,
    context: async () => (await send('GET', '/api/agent/context')).context,
    me: async () => (await send('GET', '/api/agent/me')).me,
    claim: async (run: string) =>
      (await send('POST', '/api/agent/tasks/claim-next', { run_id: run, scope: 'workspace' })).claim,
    act: (what: string, run: string, body: object = {}) => send('POST', `/api/agent/tasks/${run}/${what}`, body),
  }
}

const post = async (world: World, url: string, body: object = {}) =>
  (await world.kernel.request('POST', url, body)).body

async function newTask(world: World): Promise<{ task: string; run: string }> {
  const body = { title: 'mend it', scope: 'workspace', workspace: world.workspaceId, max_attempts: 10 }
  const { task } = await post(world, '/api/tasks', body)
  const { run } = await post(world, `/api/tasks/${task.id}/start`)
  return { task: task.id, run: run.id }
}

test('the context of a session with a run has the task, the lease and earlier attempts', async ({ world }) => {
  const ada = await speaker(world)
  assert.equal((await ada.context()).task, { available: false })
  assert.equal([(await ada.me()).active_task_leases, (await ada.me()).limits.max_active_task_leases], [[], 1])
  const { task, run } = await newTask(world)
  const { lease } = await ada.claim(run)
  const first = (await ada.context()).task
  assert.equal([first.available, first.task.id, first.lease.run_id], [true, task, run])
  assert.equal(first.bundle.limits, {
    context_body_max_bytes: BODY,
    max_runtime_seconds: 90,
    summary_max_bytes: SUMMARY,
  })
  assert.equal([first.bundle.prior_attempts, first.bundle.handoff_summary], [[], undefined])
  assert.is(first.bundle.latest_event_seq, first.bundle.recent_events.at(-1).sequence)
  assert.equal(
    (await ada.me()).active_task_leases.map((held: Reply) => held.run_id),
    [lease.run_id],
  )
  await ada.act('release', run)
  assert.equal((await ada.context()).task, { available: false })
})

test('the context of a run has the tokens that agents reported for it and for earlier attempts', async ({ world }) => {
  const ada = await speaker(world)
  const { task, run } = await newTask(world)
  await world.kernel.request('PUT', `/api/budgets/task/${task}`, { tokens: 10_000 })
  await ada.claim(run)
  assert.is((await ada.context()).task.bundle.current_run.tokens_used, undefined)
  await world.prompt(ada.at, `update ${JSON.stringify({ sessionUpdate: 'usage_update', used: 700, size: 1_000_000 })}`)
  const { bundle } = (await ada.context()).task
  assert.is(bundle.current_run.tokens_used, 700)
  assert.equal(
    bundle.recent_events.flatMap((event: Reply) => event.run ?? []).map((one: Reply) => one.tokens_used),
    bundle.recent_events.flatMap((event: Reply) => (event.run ? [700] : [])),
  )
  await ada.act('fail', run, { error: 'it broke' })
  const { run: next } = await post(world, `/api/runs/${run}/retry`)
  await ada.claim(next.id)
  const later = (await ada.context()).task.bundle
  assert.equal([later.current_run.tokens_used, later.prior_attempts[0].tokens_used], [undefined, 700])
})

test('the context of a run is bounded by the settings and keeps the newest entries', async ({ world }) => {
  const ada = await speaker(world)
  const { task, run } = await newTask(world)
  const runs = [run]
  for (let n = 1; n <= 4; n++) {
    const at = runs.at(-1) ?? ''
    await ada.claim(at)
    await ada.act('fail', at, { error: `${'é'.repeat(400)} ${n}` })
    runs.push((await post(world, `/api/runs/${at}/retry`)).run.id)
  }
  const last = runs.at(-1) ?? ''
  await ada.claim(last)
  const { bundle } = (await ada.context()).task
  assert.equal(
    bundle.prior_attempts.map(({ id }: Reply) => id),
    [runs[3], runs[2]],
    'the two before it, the newest first',
  )
  assert.is(bundle.current_run.id, last)
  assert.ok(Buffer.byteLength(bundle.handoff_summary) <= SUMMARY)
  assert.match(bundle.handoff_summary, /^é+\n\[truncated\]$/)
  const timeline = (await world.kernel.request('GET', `/api/tasks/${task}/timeline?limit=1000`)).body.timeline
  const eventsOf = (events: Reply[]) => events.map(({ sequence }: Reply) => sequence)
  assert.equal(eventsOf(bundle.recent_events), eventsOf(timeline.slice(-6)))
  const payloads = bundle.recent_events.map(({ payload }: Reply) => payload).filter(Boolean)
  assert.ok(Buffer.byteLength(payloads.map((payload: unknown) => JSON.stringify(payload)).join('')) <= BODY)
  await post(world, `/api/task-runs/${last}/cancel`)
})

test('the context of a run after a rejection has the guidance of the reviewer', async ({ world }) => {
  const ada = await speaker(world)
  const { task, run } = await newTask(world)
  await ada.claim(run)
  await ada.act('complete', run, { result: { summary: 'painted it red' } })
  const { review } = await post(world, `/api/task-runs/${run}/reviews`, {
    run_id: run,
    task_id: task,
    deadline_at: '2099-01-01T00:00:00Z',
  })
  const { continuation_run: next } = await post(world, `/api/task-reviews/${review.review_id}/verdict`, {
    run_id: run,
    verdict: {
      outcome: 'rejected',
      reason: 'it was to be blue',
      confidence: 0.9,
      delivery_id: 'd1',
      missing_work: ['a second coat'],
      next_round_guidance: 'paint it blue',
    },
  })
  await ada.claim(next.id)
  const { bundle } = (await ada.context()).task
  assert.is(bundle.handoff_summary, 'painted it red')
  assert.equal(bundle.review_continuation, {
    review_id: review.review_id,
    review_round: 1,
    reviewed_run_id: run,
    outcome: 'rejected',
    reason: 'it was to be blue',
    next_round_guidance: 'paint it blue',
    missing_work: ['a second coat'],
  })
  assert.equal(
    bundle.review_history.map(({ review_id, outcome, status }: Reply) => [review_id, outcome, status]),
    [[review.review_id, 'rejected', 'recorded']],
  )
})

test('metadata of a retry is not read as the verdict of a reviewer', async ({ world }) => {
  const ada = await speaker(world)
  const { run } = await newTask(world)
  await ada.claim(run)
  await ada.act('fail', run, { error: 'no paint' })
  const metadata = { review: { review_id: 'trev_1', reason: 'made up' } }
  const { run: next } = await post(world, `/api/runs/${run}/retry`, { metadata })
  await ada.claim(next.id)
  const { bundle } = (await ada.context()).task
  assert.equal([bundle.current_run.id, bundle.review_continuation], [next.id, null])
})

test.run()
