import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { agentText, eventually, openWorld, type World } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'

let world: World

test.before(async () => {
  world = await openWorld({ config: { session: { permissions: { timeout: '10s' } } } })
  await world.agent('plain')
})
test.after(() => world.close())

const request: World['kernel']['request'] = (method, url, body) => world.kernel.request(method, url, body)
const asks = (properties: Reply, message = 'Which one?') =>
  `call elicitation/create ${JSON.stringify({ mode: 'form', message, requestedSchema: { type: 'object', properties } })}`
const pending = async (at: string) => (await request('GET', `${at}/clarifications`)).body.clarifications
const begin = async (at: string, text: string) =>
  (await request('POST', `${at}/prompt`, { text })).body.prompt.new_turn_id as string
const answer = (at: string, id: string, body: Reply) => request('POST', `${at}/clarifications/${id}/answer`, body)
const over = (at: string, turn: string) =>
  world.until(at, event => event.turn_id === turn && (event.type === 'done' || event.type === 'error'))

test('a text question waits for a user and is answered by choice or text, once', async () => {
  const { id, at } = await world.session('plain')
  assert.equal(await pending(at), [])
  const choices = {
    color: {
      type: 'string',
      oneOf: [
        { const: 'r', title: 'Red' },
        { const: 'b', title: 'Blue' },
      ],
    },
  }
  const turn = await begin(at, asks(choices))
  const [question] = await eventually(async () => {
    const found = await pending(at)
    return found.length > 0 && found
  }, 'the question')
  assert.equal([question.question, question.choices, question.session_id], ['Which one?', ['Red', 'Blue'], id])
  assert.is((await world.row(id)).badge, 'waiting')
  const inbox = async () =>
    (await request('GET', '/api/inbox')).body.items.filter((item: Reply) => item.session_id === id)
  const [item] = await inbox()
  assert.equal(
    [item.interaction_id, item.kind, item.title, item.answer, item.expires_at],
    [question.request_id, 'question', 'Which one? (Red / Blue)', `svc session clarify ${id}`, question.deadline],
  )
  const code = async (body: Reply) => {
    const reply = await answer(at, question.request_id, body)
    return [reply.status, reply.body.code]
  }
  assert.equal(await code({ choice_index: 2 }), [400, 'clarification_invalid'])
  assert.equal(await code({ choice_index: -1 }), [400, 'clarification_invalid'])
  assert.equal(await code({}), [400, 'clarification_invalid'])
  assert.is((await answer(at, 'clq_0', { text: 'x' })).status, 404)
  assert.equal((await answer(at, question.request_id, { choice_index: 1 })).body, {
    choice: 1,
    fallback: false,
    text: 'Blue',
  })
  assert.equal(await code({ choice_index: 1 }), [409, 'clarification_answered'])
  assert.equal(await inbox(), [])
  await over(at, turn)
  assert.match(agentText(await world.events(at)), /"content":\{"color":"b"\}/)
  const other = await begin(at, asks({ name: { type: 'string' } }))
  const [text] = await eventually(async () => {
    const found = await pending(at)
    return found.length > 0 && found
  }, 'the other question')
  assert.is(text.choices, undefined)
  assert.is((await answer(at, text.request_id, { text: ' mine ' })).body.text, 'mine')
  await over(at, other)
  assert.match(agentText(await world.events(at)), /"content":\{"name":"mine"\}/)
})

test('an unanswered question ends with its time limit, its turn, or at once', async () => {
  const { at } = await world.session('plain')
  const late = await begin(at, asks({ name: { type: 'string' } }))
  await over(at, late)
  const [done] = (await world.events(at, `?turn_id=${late}`)).filter((event: Reply) => event.type === 'done')
  assert.is(done.content.expired_requests, 1)
  assert.match(agentText(await world.events(at, `?turn_id=${late}`)), /"action":"decline"/)
  const canceled = await begin(at, asks({ name: { type: 'string' } }))
  await eventually(async () => (await pending(at)).length > 0, 'the question')
  await request('POST', `${at}/prompt/cancel`)
  await over(at, canceled)
  assert.equal(await pending(at), [])
  const strange = await world.prompt(at, asks({ a: { type: 'object' } }))
  assert.match(agentText(strange), /"action":"decline"/)
  const warned = strange.find(event => event.type === 'runtime_warning')
  assert.match(warned.content.text, /declined without being asked: its form has a field a of the type object/)
})

test('form fields are asked one after the other; optional ones may be skipped, and limits apply', async () => {
  const { at } = await world.session('plain')
  const colors = ['Red', 'Blue'].map(color => ({ const: color, title: `${color} — a colour` }))
  const fields = {
    question_0: { type: 'string', title: 'Colour', oneOf: colors },
    question_0_custom: { type: 'string', title: 'Other', description: 'Type your own answer' },
    count: { type: 'integer', title: 'Count', minimum: 1, maximum: 3 },
    parts: { type: 'array', title: 'Parts', items: { enum: ['a', 'b', 'c'] }, maxItems: 2 },
    sure: { type: 'boolean', title: 'Sure' },
  }
  const schema = { type: 'object', properties: fields, required: ['count'] }
  const turn = await begin(
    at,
    `call elicitation/create ${JSON.stringify({ mode: 'form', message: 'Which?', requestedSchema: schema })}`,
  )
  const next = (position: number) =>
    eventually(async () => (await pending(at)).find((one: Reply) => one.position === position), `question ${position}`)
  const answered = async (question: Reply, body: Reply) => (await answer(at, question.request_id, body)).status
  const color = await next(1)
  assert.equal([color.question, color.total, color.optional], ['Which?\nColour', 5, true])
  assert.is(await answered(color, { text: 'Green' }), 400)
  assert.is(await answered(color, { choice_index: 1 }), 200)
  assert.is(await answered(await next(2), { skip: true }), 200)
  const count = await next(3)
  assert.equal([count.type, count.optional], ['integer', undefined])
  for (const body of [{ text: '4' }, { text: '1.5' }, { text: 'x' }, { skip: true }])
    assert.is(await answered(count, body), 400, JSON.stringify(body))
  assert.is(await answered(count, { text: '2' }), 200)
  const parts = await next(4)
  assert.is(parts.multiple, true)
  assert.is(await answered(parts, { choice_indexes: [0, 1, 2] }), 400)
  assert.is(await answered(parts, { choice_indexes: [0, 2] }), 200)
  assert.is(await answered(await next(5), { text: 'maybe' }), 400)
  assert.is(await answered(await next(5), { text: 'n' }), 200)
  await over(at, turn)
  const content = '"content":{"question_0":"Blue","count":2,"parts":["a","c"],"sure":false}'
  assert.ok(agentText(await world.events(at)).includes(content), agentText(await world.events(at)))

  const declined = await begin(at, asks(fields))
  assert.is(await answered(await next(1), { decline: true }), 200)
  await over(at, declined)
  assert.match(agentText(await world.events(at, `?turn_id=${declined}`)), /"action":"decline"/)
})

test('a recap summarizes the state of a session', async () => {
  const { id, at } = await world.session('plain', { model: 'huge' })
  await world.prompt(at, 'say one')
  await world.prompt(at, 'say two')
  await begin(at, 'hang')
  await begin(at, 'say later')
  const { recap } = (await request('GET', `${at}/recap?limit=4`)).body
  assert.equal([recap.session.id, recap.pending_inputs, recap.pending_markers], [id, 1, 0])
  assert.is(recap.recent_messages.length, 4)
  assert.match(JSON.stringify(recap.recent_messages), /two/)
  assert.is(recap.recent_markers[0].kind, 'runtime_not_taken')
  assert.match(recap.recent_markers[0].summary, /model huge/)
  assert.equal([recap.snapshot.consistency, recap.snapshot.queue_generation], ['consistent', 1])
  assert.is((await request('GET', `${at}/recap?limit=many`)).status, 400)
  await request('POST', `${at}/stop`)
})

test('slash commands of an agent are listed while it runs', async () => {
  const { at } = await world.session('plain')
  const empty = (await request('GET', `${at}/commands`)).body
  assert.equal(empty.commands, [])
  const offered = [{ name: 'plan', description: 'Plan it', input: { hint: 'what' } }]
  await world.prompt(
    at,
    `update ${JSON.stringify({ sessionUpdate: 'available_commands_update', availableCommands: offered })}`,
  )
  const { commands, revision } = (await request('GET', `${at}/commands`)).body
  assert.not.equal(revision, empty.revision)
  const [command] = commands
  assert.equal([command.canonical_token, command.input_hint, command.available], ['/plan', 'what', true])
  await request('POST', `${at}/stop`)
})

test('a queued prompt steers the running turn, once per key', async () => {
  const { at } = await world.session('plain')
  const tool = { sessionUpdate: 'tool_call', toolCallId: 't', title: 'look', kind: 'read', status: 'completed' }
  const gate = world.gate()
  const turn = await begin(at, `say begin\n${gate.line}\nupdate ${JSON.stringify(tool)}\nhang`)
  const queued = (await request('POST', `${at}/prompt`, { text: 'say first' })).body.prompt
  const second = (await request('POST', `${at}/prompt`, { text: 'say second' })).body.prompt
  const steer = (entry: string, more: Reply = {}) =>
    request('POST', `${at}/prompt/queue/${entry}/steer`, {
      expected_turn_id: turn,
      idempotency_key: 'k',
      message_id: 'm',
      text: 'say steered',
      ...more,
    })
  const code = async (entry: string, more?: Reply) => {
    const reply = await steer(entry, more)
    return [reply.status, reply.body.code]
  }
  assert.equal(await code(second.queue_entry_id, { expected_turn_id: 'trn_0' }), [409, 'turn_changed'])
  assert.equal(await code('prq_0'), [404, 'prompt_not_queued'])
  assert.equal(await code(second.queue_entry_id, { text: ' ' }), [400, 'prompt_text_missing'])
  const staged = await steer(second.queue_entry_id)
  assert.is(staged.status, 202, JSON.stringify(staged.body))
  assert.equal([staged.body.prompt.delivery, staged.body.prompt.replayed], ['steer', false])
  assert.is((await steer(second.queue_entry_id)).body.prompt.replayed, true)
  assert.equal(await code(queued.queue_entry_id, { text: 'say other' }), [409, 'prompt_idempotency_conflict'])
  await gate.open()
  await over(at, second.new_turn_id)
  await over(at, queued.new_turn_id)
  assert.match(
    agentText(await world.events(at)),
    /begin\n[\s\S]*steered\nfirst\n$/,
    'before the one that waited longer',
  )
  await request('POST', `${at}/stop`)
  assert.equal(await code(second.queue_entry_id, { idempotency_key: 'n', message_id: 'n' }), [409, 'no_active_prompt'])
})

test.run()
