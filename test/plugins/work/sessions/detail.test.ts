import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Clock, Ids } from '../../../../kernel/plugin.js'
import { Redaction } from '../../../../kernel/redaction.js'
import type { Journal } from '../../../../plugins/platform/journals/api.js'
import { encodeEvent } from '../../../../plugins/work/sessions/events.js'
import { Digest } from '../../../../plugins/work/sessions/journal/digest.js'
import { SessionLog } from '../../../../plugins/work/sessions/journal/session-log.js'
import { agentText, eventually, openWorld, type World } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'

// What can be asked about one session, and what waits in it.
let world: World

test.before(async () => {
  world = await openWorld({ config: { session: { permissions: { timeout: '4s' } } } })
  await world.agent('plain')
  await world.agent('asking', { permissions: 'approve-reads' })
})
test.after(() => world.close())

const request = (method: string, url: string, body?: unknown) => world.kernel.request(method, url, body)
const update = (fields: object) => `update ${JSON.stringify(fields)}`
const ended = (at: string, turn: string) =>
  world.until(at, event => event.turn_id === turn && (event.type === 'done' || event.type === 'error'))

test('usage is the reported one without estimates', async () => {
  const { at } = await world.session('plain')
  const usage = async () => (await request('GET', `${at}/usage`)).body.usage
  const none = { turn_count: 0, input_tokens: null, output_tokens: null, total_tokens: null, total_cost: null }
  assert.equal(await usage(), { ...none, cost_source: 'none', cost_status: 'unknown' })
  await world.prompt(at, update({ sessionUpdate: 'usage_update', used: 10, size: 100 }))
  const cost = { amount: 0.5, currency: 'EUR' }
  await world.prompt(at, update({ sessionUpdate: 'usage_update', used: 25, size: 100, cost }))
  const told = { turn_count: 2, total_tokens: 25, total_cost: 0.5, cost_currency: 'EUR' }
  await eventually(async () => (await usage()).total_cost === 0.5, 'the cost')
  assert.equal(await usage(), { ...none, ...told, cost_source: 'agent_reported', cost_status: 'actual' })
})

test('journal totals are counted incrementally, and rare events are searched where possible', async () => {
  const read: number[] = []
  const payload = encodeEvent({ type: 'user_message', turnId: 't', content: { text: 'x' } }, 'evt_0', 0)
  const journal = (last: number) =>
    ({
      generation: 1,
      first: 1,
      last,
      read: async (from: number, limit: number) => {
        const sequences = Array.from({ length: Math.min(limit, last - from + 1) }, (_, i) => from + i)
        read.push(...sequences)
        return sequences.map(sequence => ({ sequence, payload }))
      },
      written: async () => {},
      append: () => [++last],
    }) as unknown as Journal
  const clock = { now: () => 0 } as Clock
  const log = (last: number) =>
    new SessionLog(journal(last), clock, { id: (prefix: string) => `${prefix}_0` } as Ids, new Redaction(), () =>
      assert.unreachable(),
    )
  const usage = { turns: 400_000, tokens: 7, cost: null }
  const stretches = Array.from({ length: 250 }, (_, i) => (i === 3 || i === 200 ? 1 << 6 : 0))
  const column = JSON.stringify({ sequence: 999_998, usage, types: stretches })
  const long = log(1_000_000)
  assert.equal((await long.digested(column)).usage, { ...usage, turns: 400_002 })
  assert.equal(read, [999_999, 1_000_000])
  long.append({ type: 'usage', turnId: 't', content: { usage: { used: 9 } } })
  assert.equal(
    [long.digest?.usage.tokens, long.digest?.usage.turns, read.length],
    [9, 400_002, 2],
    'what is appended is counted as it comes',
  )
  const known = Digest.stored(long.digest!.toString())
  assert.equal([known.sequence, known.usage], [1_000_001, long.digest?.usage], 'as the row has it')
  assert.is((await log(3).digested(column)).usage.turns, 3)
  assert.is((await log(3).digested('{"turns":9}')).usage.turns, 3, 'what another version counted is counted again')

  read.length = 0
  assert.equal(await long.query({ type: 'permission', limit: 10 }, column), [])
  const stretch = (n: number) => Array.from({ length: 4000 }, (_, i) => n * 4000 + i)
  assert.equal(
    read.toSorted((a, b) => a - b),
    [...stretch(3), ...stretch(200)],
    'read only where there may be one',
  )
})

test('usage is available after a stop and a restart', async () => {
  const { at } = await world.session('plain')
  await world.prompt(at, update({ sessionUpdate: 'usage_update', used: 7, size: 100 }))
  await request('POST', `${at}/stop`)
  await world.restart()
  const { usage } = (await request('GET', `${at}/usage`)).body
  assert.equal([usage.turn_count, usage.total_tokens], [1, 7])
})

test('interactions are pending, answered, expired, canceled or abandoned', async () => {
  const { id, at } = await world.session('asking')
  const options = ['allow_once', 'reject_once'].map(kind => ({ optionId: kind, name: kind, kind }))
  const ask = `ask ${JSON.stringify({ toolCall: { toolCallId: 'c', title: 'rm', kind: 'delete' }, options })}`
  const questions = async () => {
    const { body } = await request('POST', `${at}/prompt`, { text: ask })
    const turn = body.prompt.new_turn_id
    const question = await world.until(at, event => event.turn_id === turn && event.content.status === 'pending')
    return { turn, request_id: question.content.request_id }
  }
  const list = async (status = '') => (await request('GET', `${at}/interactions${status}`)).body.interactions
  const first = await questions()
  assert.equal(
    (await list('?status=pending')).map((one: Reply) => [one.interaction_id, one.status]),
    [[first.request_id, 'pending']],
  )
  await request('POST', `${at}/approve`, { request_id: first.request_id, turn_id: first.turn, decision: 'reject-once' })
  await ended(at, first.turn)
  await ended(at, (await questions()).turn)
  const third = await questions()
  await request('POST', `${at}/prompt/cancel`)
  await ended(at, third.turn)
  assert.equal(
    (await list()).map((one: Reply) => [one.status, one.resolution]),
    [
      ['resolved', 'reject-once'],
      ['timed_out', 'reject-once'],
      ['canceled', 'cancelled'],
    ],
  )
  assert.is((await list('?status=pending')).length, 0)
  assert.is((await request('GET', `${at}/interactions?status=odd`)).status, 400)
  assert.is((await request('GET', `${at}/inspect?include_recent_wake_events=true`)).body.health.session_id, id)
})

test('wait returns at the end of a turn, at a stop, or at its time limit, and resumes', async () => {
  const { at } = await world.session('plain')
  const wait = async (body: object) => (await request('POST', `${at}/wait`, { timeout_ms: 10_000, ...body })).body
  assert.equal([(await wait({})).outcome, (await wait({})).state], ['reached', 'idle'])
  const gate = world.gate()
  await request('POST', `${at}/prompt`, { text: gate.line })
  const early = await wait({ timeout_ms: 30 })
  assert.equal([early.outcome, early.state], ['timeout', 'prompting'])
  await gate.open()
  assert.equal([(await wait({ resume_id: early.resume_id, timeout_ms: 60_000 })).state], ['idle'])
  const stopped = wait({ until: ['stopped'] })
  await request('POST', `${at}/stop`)
  assert.equal([(await stopped).outcome, (await stopped).state], ['reached', 'stopped'])
  const refused = async (body: object) => (await request('POST', `${at}/wait`, { timeout_ms: 1, ...body })).status
  assert.equal(
    [
      await refused({ timeout_ms: -1 }),
      await refused({ until: ['done'] }),
      await refused({ epoch: 9 }),
      await refused({ resume_id: 'ses_0.idle' }),
    ],
    [400, 422, 409, 410],
  )
})

test('repair finds nothing in an intact transcript and skips an active session unless forced', async () => {
  const { at } = await world.session('plain')
  await world.prompt(at, 'say x')
  const repair = async (force = '') => (await request('POST', `${at}/repair?dry_run=true${force}`)).body.repair
  assert.equal([(await repair()).issues[0].code, (await repair()).actions], ['session_active', []])
  await request('POST', `${at}/wait`, { timeout_ms: 10_000 })
  assert.equal((await repair('&force=true')).issues, [], 'no turn runs')
  const gate = world.gate()
  const running = await request('POST', `${at}/prompt`, { text: gate.line })
  assert.is((await repair('&force=true')).issues[0].code, 'session_active', 'what is open may still end')
  await gate.open()
  await ended(at, running.body.prompt.new_turn_id)
  await request('POST', `${at}/stop`)
  assert.equal([(await repair()).issues, (await repair()).actions, (await repair()).persisted], [[], [], false])
})

test('only waiting prompts of the queue can be listed, changed and removed', async () => {
  const { at } = await world.session('plain')
  const gate = world.gate()
  await request('POST', `${at}/prompt`, { text: gate.line })
  const add = async (text: string) => (await request('POST', `${at}/prompt`, { text })).body.prompt.queue_entry_id
  const [first, second] = [await add('say one'), await add('say two')]
  const texts = async () => (await request('GET', `${at}/prompt/queue`)).body.inputs.map((input: Reply) => input.text)
  assert.equal(await texts(), ['say one', 'say two'])
  const change = (id: string, fields = {}) =>
    request('PUT', `${at}/prompt/queue/${id}`, { text: 'say 1', message_id: 'm1', idempotency_key: 'k1', ...fields })
  assert.is((await change(first)).body.input.text, 'say 1')
  assert.is((await change(second)).body.code, 'prompt_idempotency_conflict')
  assert.is((await change('prq_0')).status, 404)
  assert.is((await change(first, { text: ' ' })).status, 400)
  assert.is((await request('DELETE', `${at}/prompt/queue/${second}`)).body.prompt.status, 'canceled')
  assert.is((await request('DELETE', `${at}/prompt/queue/${second}`)).status, 404)
  assert.equal(await texts(), ['say 1'])
  await gate.open()
  await world.until(at, event => event.type === 'agent_message' && event.content.text === '1\n')
  assert.is((await change(first)).status, 404, 'it ran')
  const texted = agentText(await world.events(at))
  assert.not.match(texted, /one|two/)
})

test('steering applies at the next tool result, before queued prompts; without one it is queued', async () => {
  const { at } = await world.session('plain')
  assert.is((await request('POST', `${at}/steer`, { text: 'say left' })).body.code, 'no_active_prompt')
  const tool = (status: string) => update({ sessionUpdate: 'tool_call', toolCallId: 'c', title: 'T', status })
  const gate = world.gate()
  const running = await request('POST', `${at}/prompt`, {
    text: `${tool('pending')}\n${gate.line}\n${tool('completed')}\n${world.gate().line}\nsay never`,
  })
  await request('POST', `${at}/prompt`, { text: 'say queued' })
  const steered = await request('POST', `${at}/steer`, { text: 'say steered' })
  assert.equal([steered.status, steered.body.prompt.staged], [202, true])
  await gate.open()
  const end = await ended(at, running.body.prompt.new_turn_id)
  assert.is(end.content.status, 'canceled')
  await world.until(at, event => event.type === 'agent_message' && event.content.text === 'queued\n')
  const words = agentText(await world.events(at))
  assert.is(words, 'steered\nqueued\n')
  const results = (await world.events(at, '?type=tool_result')).map(event => event.content.status)
  assert.equal(results, ['completed'], 'the tool is not torn out of its work')
})

test.run()
