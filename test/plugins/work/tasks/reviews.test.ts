import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  allowsReview,
  consequenceOf,
  isDue,
  REVIEW_MOVES,
  type ReviewMove,
} from '../../../../plugins/work/tasks/reviews/states.js'
import type { ReviewStatus } from '../../../../schemas/tasks.js'
import type { Reply } from '../../../harness/kernel.js'
import { type Agent, type Scene, scene } from './scene.js'

const HOUR = 3_600_000
const test = suite<{ world: Scene }>('reviews of runs')

test.before.each(async context => {
  context.world = await scene()
})
test.after.each(({ world }) => world.close())

/** A task whose run an agent has done. */
async function done(world: Scene, how: 'complete' | 'fail' = 'complete', more: object = {}) {
  const made = await world.queued(more)
  const ada = world.agent()
  await ada.claim({ run_id: made.run })
  await ada.act(how, made.run, how === 'fail' ? { error: 'no paint' } : {})
  return { ...made, ada }
}

const ask = ({ post, clock }: Scene, { task, run }: { task: string; run: string }, more: object = {}) =>
  post(`/api/task-runs/${run}/reviews`, {
    run_id: run,
    task_id: task,
    deadline_at: new Date(clock.now() + HOUR).toISOString(),
    ...more,
  })
const verdict = (outcome: string, more: object = {}) => ({
  outcome,
  reason: 'I have looked',
  confidence: 0.9,
  delivery_id: `d-${outcome}`,
  ...more,
})
const judge = ({ post }: Scene, id: string, run: string, body: object) =>
  post(`/api/task-reviews/${id}/verdict`, { run_id: run, verdict: body })
/** As the agent of a session says it. */
const as = async ({ kernel }: Scene, { id }: Agent, url: string, body: object = {}) => {
  const headers = { 'x-service-session-id': id, 'x-service-agent': 'ada' }
  const reply = await kernel.inject({ method: 'POST', url, headers, body })
  return { status: reply.status, body: JSON.parse(reply.body) as Reply }
}

test('an approval is recorded and queues no run', async ({ world }) => {
  const work = await done(world)
  const reply = await ask(world, work, { reason: 'look at the colours' })
  assert.equal([reply.status, reply.body.created, reply.body.review.status], [201, true, 'requested'])
  assert.equal([reply.body.review.attempt, reply.body.review.review_round], [1, 1])
  const again = await ask(world, work)
  assert.equal([again.status, again.body.created], [200, false])
  const { review_id: id } = reply.body.review
  const recorded = await judge(world, id, work.run, verdict('approved'))
  assert.equal(
    [recorded.status, recorded.body.review.status, recorded.body.review.outcome, recorded.body.continuation_run],
    [200, 'recorded', 'approved', null],
  )
  assert.ok(recorded.body.review.reviewed_by.ref)
  assert.is((await judge(world, id, work.run, verdict('approved'))).status, 200, 'the same delivery')
  const other = await judge(world, id, work.run, verdict('rejected'))
  assert.equal([other.status, other.body.code], [409, 'task_review_conflict'])
  assert.is((await world.task(work.task)).task.status, 'completed')
})

test('a rejection reopens the task with a run that has the missing work', async ({ world }) => {
  const work = await done(world)
  const { review_id: id } = (await ask(world, work)).body.review
  const rejection = verdict('rejected', { missing_work: ['tests'], next_round_guidance: 'write tests' })
  const { continuation_run: next } = (await judge(world, id, work.run, rejection)).body
  assert.equal([next.status, next.previous_run_id, next.attempt], ['queued', work.run, 2])
  assert.equal(next.metadata.review, {
    review_id: id,
    review_round: 1,
    reason: 'I have looked',
    next_round_guidance: 'write tests',
    missing_work: ['tests'],
  })
  assert.is((await world.task(work.task)).task.status, 'ready')
  const eve = world.agent()
  await eve.claim({ run_id: next.id })
  await eve.act('complete', next.id)
  assert.is((await world.task(work.task)).task.status, 'completed')
  const second = await ask(world, { task: work.task, run: next.id })
  assert.is(second.body.review.review_round, 2)
})

test('a rejection in the third round and a blocked reviewer make the task need attention', async ({ world }) => {
  const last = await done(world)
  const { review_id: third } = (await ask(world, last, { review_round: 3 })).body.review
  const opened = (await judge(world, third, last.run, verdict('rejected'))).body
  assert.equal([opened.circuit_opened, opened.review.status, opened.continuation_run], [true, 'circuit_opened', null])
  const { task } = await world.task(last.task)
  assert.equal([task.needs_attention, task.needs_attention_reason], [true, 'review_rejected: I have looked'])
  const other = await done(world)
  const { review_id: id } = (await ask(world, other)).body.review
  assert.is((await judge(world, id, other.run, verdict('blocked'))).body.circuit_opened, true)
})

test('a review needs a session other than the worker and is exclusive to the assigned session', async ({ world }) => {
  const work = await done(world)
  const { review_id: id } = (await ask(world, work)).body.review
  const own = await as(world, work.ada, `/api/task-reviews/${id}/start`)
  assert.equal([own.status, own.body.code], [409, 'task_review_own_work'])
  assert.is((await world.post(`/api/task-reviews/${id}/route`, { session_id: work.ada.id })).status, 409)
  const [eve, bob] = [world.agent(), world.agent()]
  const routed = await world.post(`/api/task-reviews/${id}/route`, { session_id: eve.id })
  assert.equal([routed.body.review.status, routed.body.review.reviewer_session_id], ['routed', eve.id])
  const foreign = await as(world, bob, `/api/task-reviews/${id}/start`)
  assert.equal([foreign.status, foreign.body.code], [409, 'task_review_foreign'])
  assert.is((await as(world, eve, `/api/task-reviews/${id}/start`)).body.review.status, 'in_review')
  const { reviews } = (await world.request('GET', `/api/tasks/${work.task}/reviews?reviewer_session_id=${eve.id}`)).body
  assert.equal(
    reviews.map((review: Reply) => review.review_id),
    [id],
  )
  const body = { run_id: work.run, verdict: verdict('approved') }
  const { review } = (await as(world, eve, `/api/task-reviews/${id}/verdict`, body)).body
  assert.equal([review.status, review.reviewed_by], ['recorded', { kind: 'agent_session', ref: eve.id }])
})

test('stopping the reviewing session unassigns the review', async ({ world }) => {
  const work = await done(world)
  const { review_id: id } = (await ask(world, work)).body.review
  const eve = world.agent()
  await as(world, eve, `/api/task-reviews/${id}/start`)
  await world.stop(eve)
  const { review } = (await world.request('GET', `/api/task-reviews/${id}`)).body
  assert.equal([review.status, review.reviewer_session_id], ['requested', undefined])
})

test('a review without a verdict before the deadline times out', async ({ world }) => {
  const work = await done(world)
  const { review_id: id } = (await ask(world, work)).body.review
  await world.pass(HOUR + 15_000)
  const { review } = (await world.request('GET', `/api/task-reviews/${id}`)).body
  assert.equal([review.status, review.outcome], ['recorded', 'timeout'])
  assert.is((await world.task(work.task)).task.status, 'completed')
})

test('reviews are canceled individually or with their task', async ({ world }) => {
  const work = await done(world, 'fail')
  const { review_id: id } = (await ask(world, work)).body.review
  await world.post(`/api/tasks/${work.task}/cancel`)
  assert.is((await world.request('GET', `/api/task-reviews/${id}`)).body.review.status, 'canceled')
  const late = await judge(world, id, work.run, verdict('rejected'))
  assert.equal([late.status, late.body.code], [409, 'task_review_conflict'])
})

test('an invalid request or verdict is refused with the invalid member', async ({ world }) => {
  const work = await done(world, 'fail')
  const open = await world.queued()
  const refused = async (body: object, of = work) => {
    const { status, body: reply } = await ask(world, of, body)
    return `${status} ${reply.code} ${reply.error}`
  }
  assert.match(await refused({ policy: 'on_success' }), '409 task_review_not_due')
  assert.match(await refused({}, { ...open, ada: work.ada }), '409 task_review_not_due')
  assert.match(await refused({ run_id: 'trun_other' }), /400 task_review_invalid .*run_id/)
  assert.match(await refused({ task_id: 'task_other' }), /400 task_review_invalid .*task_id/)
  assert.match(await refused({ attempt: 2 }), /400 task_review_invalid .*attempt/)
  assert.match(await refused({ review_round: 0 }), /400 task_review_invalid .*review_round/)
  assert.match(await refused({ deadline_at: '2000-01-01T00:00:00Z' }), /400 task_review_invalid .*deadline_at/)
  assert.match(await refused({ deadline_at: 'soon' }), '400 invalid_request')
  const { review_id: id } = (await ask(world, work)).body.review
  const wrong = async (said: object) => {
    const { status, body } = await judge(world, id, work.run, said)
    return `${status} ${body.error}`
  }
  assert.match(await wrong(verdict('approved', { confidence: 2 })), /400 .*confidence/)
  assert.match(await wrong(verdict('approved', { reason: ' ' })), /400 .*reason/)
  assert.match(await wrong(verdict('approved', { delivery_id: '' })), /400 .*delivery_id/)
  assert.match(await wrong(verdict('approved', { missing_work: 'x'.repeat(9000) })), /400 .*missing_work/)
  assert.match(await wrong(verdict('fine')), /400 /)
  assert.is((await world.request('GET', '/api/task-reviews/trev_none')).body.code, 'task_review_not_found')
})

test('review transitions follow the table, and each outcome has its effect', () => {
  const states: ReviewStatus[] = ['requested', 'routed', 'in_review', 'recorded', 'circuit_opened', 'canceled']
  for (const move of Object.keys(REVIEW_MOVES) as ReviewMove[])
    for (const final of ['recorded', 'circuit_opened', 'canceled'] as const)
      assert.is(allowsReview(move, final), false, `${move} after ${final}`)
  assert.equal(
    states.filter(status => allowsReview('start', status)),
    ['requested', 'routed'],
  )
  assert.equal(
    [consequenceOf('rejected', 1, 3), consequenceOf('rejected', 3, 3), consequenceOf('rejected', 9, 0)],
    ['continue', 'stop', 'continue'],
  )
  assert.equal([consequenceOf('timeout', 9, 3), consequenceOf('blocked', 1, 0)], ['nothing', 'stop'])
  assert.equal(
    [isDue('on_failure', 'failed'), isDue('none', 'failed'), isDue('always', 'running')],
    [true, false, false],
  )
})

test.run()
