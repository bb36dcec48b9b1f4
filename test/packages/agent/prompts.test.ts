import { statSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type AgentWorld, openAgent } from '../../fixtures/agent-world.js'

let world: AgentWorld

test.before(async () => {
  world = await openAgent({ 'AGENTS.md': 'Speak of elephants.\n', 'a.txt': 'one\ntwo\n' })
})
test.before.each(() => world.clear())
test.after(() => world.close())

test('text and thoughts are streamed, and the turn ends', async () => {
  world.model.script([{ thoughts: 'hm', text: 'Hello there, friend.' }])
  assert.equal(await world.prompt('hi'), { stopReason: 'end_turn' })
  assert.is(world.said(), 'Hello there, friend.')
  assert.is(world.thought(), 'hm')
  assert.ok(world.updates.filter(({ sessionUpdate }) => sessionUpdate === 'agent_message_chunk').length >= 3)
})

test('the model gets the conversation, the instructions of the workspace, and the key', async () => {
  world.model.script([{ text: 'first' }, { text: 'second' }])
  await world.prompt('one')
  await world.prompt('two')
  const { messages, authorization, model } = world.model.asked.at(-1)!
  assert.match(String(messages[0]?.content), 'Speak of elephants.')
  assert.equal(
    messages.slice(-3).map(({ role, content }) => [role, content]),
    [
      ['user', 'one'],
      ['assistant', 'first'],
      ['user', 'two'],
    ],
  )
  assert.is(authorization, 'Bearer sk-secret-of-the-test')
  assert.is(model, 'scripted')
})

test('a file is read and its text is sent to the model', async () => {
  world.model.script([{ calls: [{ name: 'read', input: { path: 'a.txt' } }] }, { text: 'It says one.' }])
  await world.prompt('what does a.txt say?')
  assert.equal(world.model.results().at(-1), 'one\ntwo')
  assert.is(world.call().status, 'completed')
  assert.is(world.call().kind, 'read')
  assert.equal(world.call().locations, [{ path: path.join(world.root, 'a.txt') }])
})

/** The smallest PNG: one pixel. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const withImage = (text: string, data = PIXEL, mimeType = 'image/png') =>
  world.request('session/prompt', {
    sessionId: world.opened.sessionId,
    prompt: [
      { type: 'image', data, mimeType },
      { type: 'text', text },
    ],
  })

/** URLs of the images that the last request of the model had. */
const images = () =>
  world.model.asked
    .at(-1)!
    .messages.flatMap(({ content }) => (Array.isArray(content) ? (content as { image_url?: { url: string } }[]) : []))
    .flatMap(part => (part.image_url ? [part.image_url.url] : []))

test('an image reaches the model in this turn and in later ones', async () => {
  await world.fresh({})
  world.model.script([{ text: 'a pixel' }, { text: 'still a pixel' }])
  assert.equal(await withImage('what is it?'), { stopReason: 'end_turn' })
  assert.equal(images(), [`data:image/png;base64,${PIXEL}`])
  await world.prompt('and now?')
  assert.equal(images(), [`data:image/png;base64,${PIXEL}`])
})

test('a model without image input gets a text instead, and the user is informed', async () => {
  const bodies = [
    { status: 400, body: '{"error":{"message":"this model does not support image input"}}' },
    { status: 400, body: '{"error":{"message":"tiny is not a multimodal model"}}' },
    { status: 422, body: '{"error":{"message":"messages[1].content must be a string"}}' },
  ]
  for (const refusal of bodies) {
    await world.fresh({})
    world.model.script([refusal, { text: 'I see nothing' }, { text: 'still nothing' }])
    assert.equal(await withImage('what is it?'), { stopReason: 'end_turn' }, refusal.body)
    assert.match(world.said(), 'the model scripted does not support images; it gets the prompt without them')
    assert.equal(images(), [])
    assert.match(String(world.model.asked.at(-1)?.messages.at(-1)?.content), '[1 image left out; you cannot see them]')
    await world.prompt('and now?')
    assert.equal(images(), [])
  }
})

test('an invalid image or an image URL is not passed on', async () => {
  for (const [data, type] of [
    ['http://127.0.0.1:1/secret', 'image/png'],
    [PIXEL, 'image/svg+xml'],
    [PIXEL, 'text/html'],
  ]) {
    await world.fresh({})
    world.model.script([{ text: 'fine' }])
    assert.equal(await withImage('what is it?', data, type), { stopReason: 'end_turn' })
    assert.match(String(world.model.asked.at(-1)?.messages.at(-1)?.content), '[an image that is not PNG')
  }
})

test('only the owner can read the transcript', () => {
  const file = path.join(world.state, `${world.opened.sessionId}.json`)
  assert.is(statSync(file).mode & 0o777, 0o600)
  assert.is(statSync(world.state).mode & 0o777, 0o700)
})

test.run()
