// timeout: 120s
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type AgentWorld, openAgent } from '../../fixtures/agent-world.js'
import type { Step } from '../../fixtures/scripted-model.js'
import type { Reply } from '../../harness/kernel.js'

let world: AgentWorld

test.before(async () => {
  world = await openAgent(
    { 'a.txt': 'a\n' },
    {
      env: { SVC_AGENT_SILENCE_MS: '2500', SVC_AGENT_STALL_MS: '2000', OPENAI_CONTEXT_WINDOW: '4096' },
    },
  )
})
test.before.each(() => world.clear())
test.after(() => world.close())

/** How a prompt fails when the model answers so. */
async function failure(...steps: readonly Step[]): Promise<Reply> {
  world.model.script(steps)
  return world.prompt('go').then(
    reply => assert.unreachable(`it ended with ${JSON.stringify(reply)}`),
    error => error,
  )
}
/** The next prompt works as if nothing had been. */
async function goesOn() {
  world.model.script([{ text: 'fine' }])
  assert.equal(await world.prompt('again'), { stopReason: 'end_turn' })
}

test('a refused key is reported with the command that replaces it, and never shown', async () => {
  const body = JSON.stringify({ error: { message: 'Incorrect API key provided: sk-secret-of-the-test' } })
  const error = await failure({ status: 401, body })
  assert.is(error.code, -32000)
  assert.match(error.message, 'refuses the key (HTTP 401): Incorrect API key provided: [key]')
  assert.match(error.message, 'svc vault put vault:providers/svc/OPENAI_API_KEY')
  assert.not.match(JSON.stringify(error.message), 'sk-secret')
  await goesOn()
})

test('a short rate limit is waited out and shown', async () => {
  world.model.script([{ status: 429, headers: { 'retry-after': '1' } }, { text: 'now' }])
  assert.equal(await world.prompt('go'), { stopReason: 'end_turn' })
  assert.match(world.thought(), 'rate-limited')
  assert.is(world.said(), 'now')
})

test('a long rate limit ends the turn with the wait', async () => {
  const error = await failure({ status: 429, headers: { 'retry-after': '120' } })
  assert.match(error.message, 'is rate-limited (HTTP 429): scripted failure; try again in 120 s')
  assert.equal(error.data, { code: 'rate_limited' })
})

test('a failing endpoint is retried, then reported as failing', async () => {
  world.model.script([{ status: 500 }, { text: 'back' }])
  assert.equal(await world.prompt('go'), { stopReason: 'end_turn' })
  assert.match((await failure({ status: 503 }, { status: 502 }, { status: 500 })).message, 'failed (HTTP 500)')
  await goesOn()
})

test('an unknown model and a wrong path are reported as such', async () => {
  assert.match((await failure({ status: 404 })).message, 'offers no chat completions for the model scripted')
})

test('other refusals of the endpoint are passed on', async () => {
  const error = await failure({ status: 400, body: '{"error":{"message":"tools are not supported"}}' })
  assert.match(error.message, 'refuses the request (HTTP 400): tools are not supported')
})

test('a conversation that is too long is shortened once, then reported as too long', async () => {
  const body = JSON.stringify({ error: { message: "This model's maximum context length is 100 tokens" } })
  world.model.script([{ status: 400, body }, { text: 'a summary' }, { text: 'it fits' }])
  assert.equal(await world.prompt('go'), { stopReason: 'end_turn' })
  assert.is(world.said(), 'it fits')
  world.model.script(({ tools }) => (tools.length > 0 ? { status: 400, body } : { text: 'a summary' }))
  const error = await world.prompt('go').catch(error => error)
  assert.match(error.message, 'too long for the model scripted')
  await goesOn()
})

test('a dropped stream is reported, and the received part stays in the conversation', async () => {
  const error = await failure({ text: 'half of an', drop: 'middle', dripMs: 100 })
  assert.match(error.message, 'was dropped before the answer was complete')
  assert.is(world.said(), 'half of an')
  await goesOn()
  const { messages } = world.model.asked.at(-1)!
  assert.equal(messages.at(-2), { role: 'assistant', content: 'half of an' })
})

test('a stream without an end marker is a dropped one', async () => {
  assert.match((await failure({ text: 'half of an', drop: 'quietly' })).message, 'was dropped before')
})

test('a connection closed before an answer is retried', async () => {
  world.model.script([{ drop: 'before' }, { text: 'there' }])
  assert.equal(await world.prompt('go'), { stopReason: 'end_turn' })
  assert.is(world.said(), 'there')
})

test('a silent endpoint is abandoned', async () => {
  assert.match((await failure({ sleepMs: 4000 })).message, 'has sent no data for 2.5 s (SVC_AGENT_SILENCE_MS)')
})

test('a stream that hangs in its middle is abandoned, and retried if nothing of it was shown', async () => {
  world.model.script([{ begins: true, hangs: true }, { text: 'there' }])
  assert.equal(await world.prompt('go'), { stopReason: 'end_turn' })
  assert.is(world.said(), 'there')
  world.clear()
  const error = await failure({ text: 'half of an', hangs: true })
  assert.match(error.message, 'has sent no data in the middle of its answer for 2 s (SVC_AGENT_STALL_MS)')
  assert.is(world.said(), 'half of an')
  await goesOn()
})

test('an endpoint that speaks half of the protocol is reported', async () => {
  const html = { 'content-type': 'text/html' }
  assert.match(
    (await failure({ headers: html, body: '<html>Login</html>' })).message,
    'with text/html instead of a stream',
  )
  const json = { 'content-type': 'application/json' }
  assert.match((await failure({ headers: json, body: '{}' })).message, 'with application/json instead of a stream')
  for (const body of ['data: {"choices": "none"}\n\n', 'data: not json\n\n', 'data: [DONE]\n\n', 'garbage', '']) {
    const { message } = await failure({ body }, { body }, { body })
    assert.match(
      message,
      /did not reply with chat completions|was dropped before|speaks something else|closed the connection/,
      body,
    )
  }
  await goesOn()
})

test('an endless answer is cut', async () => {
  const error = await failure({ endless: 'word '.repeat(2000) })
  assert.match(error.message, 'the model sent more than 400000 characters of text in one answer')
  await goesOn()
})

test('an error within a stream is passed on', async () => {
  const body = 'data: {"error":{"message":"out of memory"}}\n\n'
  assert.match(
    (await failure({ body }, { body }, { body })).message,
    'failed in the middle of its answer: out of memory',
  )
  world.model.script([{ body }, { text: 'second try' }])
  assert.equal(await world.prompt('again'), { stopReason: 'end_turn' })
  assert.match(world.said(), 'second try')
})

test('an event without choices is ignored', async () => {
  const events = [
    { choices: null, usage: { prompt_tokens: 1 } },
    { choices: [{ index: 0, delta: { content: 'all the same' } }] },
    { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  ]
  world.model.script([
    { body: `${events.map(event => `data: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n` },
  ])
  assert.equal(await world.prompt('go'), { stopReason: 'end_turn' })
  assert.match(world.said(), 'all the same')
})

test('a missing endpoint and an unset one are reported as such', async () => {
  const gone = await openAgent({}, { env: { OPENAI_BASE_URL: 'http://127.0.0.1:29998/v1', OPENAI_MODEL: 'x' } })
  assert.match(
    (await gone.prompt('go').catch(error => error)).message,
    'http://127.0.0.1:29998/v1 cannot be reached (ECONNREFUSED)',
  )
  await gone.close()
  const none = await openAgent({}, { env: { OPENAI_BASE_URL: '' } })
  assert.match((await none.prompt('go').catch(error => error)).message, 'no endpoint is configured; run svc init')
  await none.close()
})

test('a cut or filtered answer ends the turn as such', async () => {
  world.model.script([{ text: 'long', finish: 'length' }])
  assert.equal(await world.prompt('go'), { stopReason: 'max_tokens' })
  world.model.script([{ text: 'no', finish: 'content_filter' }])
  assert.equal(await world.prompt('go'), { stopReason: 'refusal' })
  world.model.script([{ text: '' }])
  assert.equal(await world.prompt('go'), { stopReason: 'end_turn' })
  assert.match(world.said(), 'the model answered with nothing')
})

test.run()
