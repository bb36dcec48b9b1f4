import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually, openWorld, type World } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'

let world: World

test.before(async () => {
  world = await openWorld({ config: { session: { goal: { turn_limit: 3 } } } })
  await world.agent('works')
})
test.after(() => world.close())

const send = (at: string, text: string, more: Reply = {}) =>
  world.kernel.request('POST', `${at}/prompt`, { text, ...more })
const goal = async (at: string): Promise<Reply> => (await world.kernel.request('GET', `${at}/goal`)).body.goal
const became = (at: string, status: string) =>
  eventually(async () => {
    const now = await goal(at)
    return now?.status === status && now
  }, `a goal that is ${status}`)
const turns = async (at: string) =>
  (await world.events(at)).filter(({ type, content }) => type === 'user_message' && content.source === 'goal')

test('a goal takes turns until the agent reports it as reached', async () => {
  const { at } = await world.session('works')
  assert.is(await goal(at), null)
  const started = await send(at, '/goal say working\nsay-from 2 GOAL: reached')
  assert.is(started.status, 200, JSON.stringify(started.body))
  const { prompt } = started.body
  assert.equal([prompt.status, prompt.goal.outcome, prompt.goal.snapshot.status], ['goal_started', 'started', 'active'])
  const done = await became(at, 'complete')
  assert.equal([done.turns_used, done.turn_limit, done.run_status, done.live], [2, 3, 'done', false])
  assert.equal([done.last_verdict.outcome, done.cause], ['approved', null])
  const [first, second] = await turns(at)
  assert.match(first!.content.text, /turn 1 of at most 3[\s\S]*say working/)
  assert.match(second!.content.text, /turn 2 of at most 3/)
  assert.is(done.last_verdict.evidence_ref, second!.turn_id)
  const again = await send(at, '/goal another one: say x')
  assert.is(again.body.prompt.goal.outcome, 'started', 'one that is complete gives way')
})

test('a goal is blocked by its agent and continues when resumed', async () => {
  const { at } = await world.session('works')
  await send(at, '/goal say GOAL: **blocked**: no key for the server\nsay-from 2 GOAL: reached')
  const blocked = await became(at, 'blocked')
  assert.equal(blocked.last_verdict.blocking_issues, [{ id: 'agent', note: 'no key for the server' }])
  assert.is((await turns(at)).length, 1)
  assert.is((await send(at, '/goal resume')).body.prompt.goal.outcome, 'resumed')
  assert.is((await became(at, 'complete')).turns_used, 2)
})

test('turns of a goal are limited; resuming grants as many again', async () => {
  const { at } = await world.session('works')
  await send(at, '/goal say on and on\nsay-from 5 GOAL: reached')
  const spent = await became(at, 'budget-limited')
  assert.equal([spent.turns_used, spent.run_status, spent.cause], [3, 'exhausted', 'goal_budget_fenced'])
  await send(at, '/goal resume')
  assert.is((await became(at, 'complete')).turns_used, 5)
})

test('a canceled turn or a request pauses a goal; a prompt of a user goes first', async () => {
  const { at } = await world.session('works')
  await send(at, '/goal hang')
  await eventually(async () => (await turns(at)).length > 0, 'its first turn')
  const refused = await send(at, '/goal something else')
  assert.equal([refused.status, refused.body.code], [409, 'goal_replace_required'])
  await world.kernel.request('POST', `${at}/prompt/cancel`)
  assert.equal((await became(at, 'paused')).run_status, 'paused')
  const { run_id } = await goal(at)
  const replaced = await send(at, '/goal replace hang')
  assert.equal([replaced.body.prompt.goal.outcome, replaced.body.prompt.goal.replaced_run_id], ['replaced', run_id])
  await eventually(async () => (await turns(at)).length > 1, 'a turn of the other one')
  const own = await send(at, 'say mine', { mode: 'interrupt' })
  await world.until(at, ({ type, turn_id }) => type === 'done' && turn_id === own.body.prompt.new_turn_id)
  await eventually(async () => (await turns(at)).length > 2, 'the goal goes on afterwards')
  assert.is((await send(at, '/goal pause')).body.prompt.goal.outcome, 'paused')
  await world.kernel.request('POST', `${at}/prompt/cancel`)
  assert.is((await send(at, '/goal')).body.prompt.goal.snapshot.status, 'paused')
  assert.is((await send(at, '/goal clear')).body.prompt.goal.outcome, 'cleared')
  assert.is(await goal(at), null)
  const gone = await send(at, '/goal resume')
  assert.equal([gone.status, gone.body.code], [404, 'goal_not_active'])
})

test('a wait for a session with nothing left to do waits for the turns of its goal', async () => {
  const { id, at } = await world.session('works')
  const waited = async () => {
    const { outcome, state } = (await world.kernel.request('POST', `${at}/wait`, { timeout_ms: 60_000 })).body
    return [outcome, state, (await goal(at)).status]
  }
  const ends = [
    ['say-from 3 GOAL: reached', 'complete'],
    ['say-from 2 GOAL: blocked: no key', 'blocked'],
    ['say on and on', 'budget-limited'],
    ['say x\nerror -32000 the model is gone', 'blocked'],
  ] as const
  for (const [steps, status] of ends) {
    await send(at, `/goal replace ${steps}`)
    assert.equal(await waited(), ['reached', 'idle', status], steps)
  }
  await send(at, '/goal replace hang')
  const canceled = waited()
  await eventually(async () => (await world.row(id)).state === 'active' && (await goal(at)).turns_used > 0, 'its turn')
  await world.kernel.request('POST', `${at}/prompt/cancel`)
  assert.equal(await canceled, ['reached', 'idle', 'paused'])
  await send(at, '/goal resume')
  const paused = waited()
  await eventually(async () => (await goal(at)).turns_used > 1, 'its next turn')
  await send(at, '/goal pause')
  await world.kernel.request('POST', `${at}/prompt/cancel`)
  assert.equal(await paused, ['reached', 'idle', 'paused'])
  // The first turn of a goal starts a session that a restart has stopped.
  await world.restart()
  await send(at, '/goal replace say-from 2 GOAL: reached')
  assert.equal(await waited(), ['reached', 'idle', 'complete'])
})

test('an invalid goal is refused with a message, and a repeated key sets none twice', async () => {
  const { at } = await world.session('works')
  const none = await send(at, '/goal replace ')
  assert.equal([none.status, none.body.code], [422, 'goal_objective_required'])
  const long = await send(at, `/goal ${'x'.repeat(9000)}`)
  assert.equal([long.status, long.body.code], [422, 'goal_objective_too_large'])
  const key = { idempotency_key: 'once' }
  const first = await send(at, '/goal hang', key)
  const second = await send(at, '/goal hang', key)
  assert.equal([first.status, second.status, second.body.prompt.replayed], [200, 202, true])
  assert.is(second.body.prompt.goal.snapshot.run_id, first.body.prompt.goal.snapshot.run_id)
  const other = await send(at, 'say x', key)
  assert.equal([other.status, other.body.code], [409, 'prompt_idempotency_conflict'])
  assert.is((await send(at, '/goalkeeper')).body.prompt.status, 'queued', 'only the word itself is a command')
})

test('a failed turn blocks a goal with the reason; an exceeded quota is distinguished', async () => {
  const failing = await world.session('works')
  await send(failing.at, '/goal error -32000 the model is gone')
  const blocked = await became(failing.at, 'blocked')
  assert.equal([blocked.run_status, blocked.cause], ['failed', 'goal_prompt_request_failed'])
  const limited = await world.session('works')
  await send(limited.at, '/goal error -32000 rate limit exceeded')
  await became(limited.at, 'usage-limited')
})

test('a goal survives the daemon and continues with its session', async () => {
  const { id, at } = await world.session('works')
  await send(at, '/goal hang')
  await eventually(async () => (await turns(at)).length > 0, 'its first turn')
  const update = { sessionUpdate: 'usage_update', used: 900, size: 1000 }
  await world.restart()
  const kept = await goal(at)
  assert.equal([kept.status, kept.live, kept.turns_used], ['active', false, 1])
  await send(at, `update ${JSON.stringify(update)}`)
  await eventually(async () => (await turns(at)).length > 1, 'its second turn')
  const { context, live } = await goal(at)
  assert.equal([live, context.state, context.ratio], [true, 'known', 0.9])
  await world.kernel.request('POST', `${at}/stop`)
  assert.is((await goal(at)).live, false)
  const stopped = await send(at, '/goal replace say x')
  assert.equal([stopped.status, stopped.body.code], [409, 'session_stopped'])
  assert.is((await world.row(id)).state, 'stopped')
})

test.run()
