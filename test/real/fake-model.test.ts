import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

let model: ChildProcess
let base = ''

test.before(async () => {
  model = spawn(process.execPath, [fileURLToPath(new URL('fake-model.mjs', import.meta.url)), '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(model.stdout!, 'data')
  base = /http:\/\/\S+/.exec(String(line))?.[0] ?? ''
})

test.after(async () => {
  model.kill()
  await once(model, 'exit')
})

const post = (path: string, body: unknown) =>
  fetch(`${base}${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
  })
// biome-ignore lint/suspicious/noExplicitAny: replies of several interfaces
const json = async (reply: Promise<Response>): Promise<any> => (await reply).json()
const user = (content: string) => [{ role: 'user', content }]

test('the fake model answers as scripted in the dialects of three model interfaces', async () => {
  const messages = await json(post('/v1/messages', { model: 'm', messages: user('[[say:hello there]]') }))
  assert.is(messages.content[0].text, 'hello there')
  const chat = await json(post('/v1/chat/completions', { model: 'm', messages: user('[[say:hello chat]]') }))
  assert.is(chat.choices[0].message.content, 'hello chat')
  const responses = await json(post('/v1/responses', { model: 'm', input: '[[say:hello responses]]' }))
  assert.is(responses.output[0].content[0].text, 'hello responses')
})

test('the fake model calls an offered tool, and answers with its result', async () => {
  const tools = [{ name: 'Bash', input_schema: {} }]
  const request = { role: 'user', content: '[[tool:^Bash$ {"command":"true"}]]' }
  const call = await json(post('/v1/messages', { model: 'm', messages: [request], tools }))
  assert.is(call.stop_reason, 'tool_use')
  assert.equal(call.content[0].input, { command: 'true' })
  const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.content[0].id, content: 'done' }] }
  const after = await json(post('/v1/messages', { model: 'm', messages: [request, result], tools }))
  assert.is(after.stop_reason, 'end_turn')
})

test('the fake model plays a script by name with the last message and peer of the prompt', async () => {
  await post('/__scripts', { answer: '[[do:^Bash$ {"command":"reply MESSAGE_ID PEER_ID"}]][[say:over]]' })
  const prompt =
    'Message msg_1 from the peer ada.ses_1 in\n---\nMessage msg_2 from the peer bob.ses_2 in\n[[play:answer]]'
  const tools = [{ name: 'Bash', input_schema: {} }]
  const { content } = await json(post('/v1/messages', { model: 'm', messages: user(prompt), tools }))
  assert.equal(content[0].input, { command: 'reply msg_2 bob.ses_2' })
})

test('the fake model makes one call after the other for the run of the prompt', async () => {
  const run = 'trun_0123456789abcdef'
  const text = `run ${run} [[do:^claim$ {}]][[do:^end$ {"run_id":"RUN_ID"}]][[say:over]]`
  const tools = ['claim', 'end'].map(name => ({ type: 'function', name, function: { name } }))
  const messages: object[] = user(text)
  for (const [name, args] of [
    ['claim', '{}'],
    ['end', JSON.stringify({ run_id: run })],
  ]) {
    const { choices } = await json(post('/v1/chat/completions', { model: 'm', messages, tools }))
    const [call] = choices[0].message.tool_calls
    assert.equal([call.function.name, call.function.arguments], [name, args])
    messages.push(choices[0].message, { role: 'tool', tool_call_id: call.id, content: 'done' })
  }
  const last = await json(post('/v1/chat/completions', { model: 'm', messages, tools }))
  assert.is(last.choices[0].message.content, 'over')
})

test('the fake model fails as scripted and keeps a log', async () => {
  assert.is((await post('/v1/messages', { model: 'm', messages: user('[[http:500]]') })).status, 500)
  const log = (await (await fetch(`${base}/__log`)).json()) as { directives?: { http?: string } }[]
  assert.ok(log.some(entry => entry.directives?.http === '500'))
})

test.run()
