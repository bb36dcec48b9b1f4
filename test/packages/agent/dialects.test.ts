// timeout: 120s
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type AgentWorld, openAgent } from '../../fixtures/agent-world.js'
import type { Step } from '../../fixtures/scripted-model.js'
import type { Reply } from '../../harness/kernel.js'

let world: AgentWorld

test.before(async () => {
  world = await openAgent({ 'a.txt': 'alpha\n', 'b.txt': 'beta\n' }, { env: { SVC_AGENT_SILENCE_MS: '20000' } })
})
test.before.each(() => world.clear())
test.after(() => world.close())

/** A stream of chunks as servers write them; `end` is what comes behind the last. */
const stream = (chunks: readonly (object | string)[], end = 'data: [DONE]\n\n', newline = '\n'): Step => ({
  body: (chunks.map(chunk => (typeof chunk === 'string' ? chunk : `data: ${JSON.stringify(chunk)}\n\n`)).join('') + end)
    .split('\n')
    .join(newline),
})
const chunk = (delta: object, finish: string | null = null, more: object = {}) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
})
const usage = { prompt_tokens: 14, completion_tokens: 11, total_tokens: 25 }
const call = (name: string, args: unknown, more: object = {}) => ({
  ...more,
  type: 'function',
  function: { name, arguments: args },
})
const READ_A = JSON.stringify({ path: 'a.txt' })
const READ_B = JSON.stringify({ path: 'b.txt' })

/** Answers of servers that call `read` of a.txt, and of b.txt where they call twice. */
const calling: Readonly<Record<string, readonly [Step, number]>> = {
  'Ollama: the whole call in one chunk, then finish_reason stop': [
    stream([
      chunk({ role: 'assistant', content: '', tool_calls: [call('read', READ_A, { id: 'call_x1', index: 0 })] }),
      chunk({ role: 'assistant', content: '' }, 'stop'),
    ]),
    1,
  ],
  'older Ollama: two calls in one chunk, without an index': [
    stream([
      chunk({
        role: 'assistant',
        content: '',
        tool_calls: [call('read', READ_A, { id: 'call_a' }), call('read', READ_B, { id: 'call_b' })],
      }),
      chunk({ role: 'assistant', content: '' }, 'tool_calls'),
    ]),
    2,
  ],
  'llama.cpp: arguments in chunks, usage and timings in the last chunk, which has a choice': [
    stream([
      chunk({ role: 'assistant', content: null }),
      chunk({ tool_calls: [call('read', '{', { index: 0, id: 'Qx81' })] }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: '"path":"a' } }] }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: '.txt"}' } }] }),
      chunk({}, 'tool_calls', { usage, timings: { prompt_n: 14, prompt_ms: 53.7 } }),
    ]),
    1,
  ],
  'vLLM: an empty id in each later chunk, arguments null at first': [
    stream([
      chunk({ role: 'assistant', content: '' }),
      chunk({ tool_calls: [call('read', null, { index: 0, id: 'chatcmpl-tool-1' })] }),
      chunk({ tool_calls: [{ index: 0, id: '', function: { name: null, arguments: READ_A.slice(0, 5) } }] }),
      chunk({ tool_calls: [{ index: 0, id: '', function: { name: null, arguments: READ_A.slice(5) } }] }),
      chunk({ content: '' }, 'tool_calls'),
      { id: 'x', choices: [], usage },
    ]),
    1,
  ],
  'SGLang and LMDeploy: two calls with one index and different ids': [
    stream([
      chunk({ tool_calls: [call('read', '', { index: 0, id: '0' })] }),
      chunk({ tool_calls: [{ index: 0, id: '0', function: { arguments: READ_A } }] }),
      chunk({ tool_calls: [call('read', '', { index: 0, id: '1' })] }),
      chunk({ tool_calls: [{ index: 0, id: '1', function: { arguments: READ_B } }] }),
      chunk({}, 'tool_calls'),
    ]),
    2,
  ],
  'two calls without ids, one after the other under one index': [
    stream([
      chunk({ tool_calls: [call('read', READ_A, { index: 0 })] }),
      chunk({ tool_calls: [call('read', READ_B, { index: 0 })] }),
      chunk({}, 'stop'),
    ]),
    2,
  ],
  'the name repeated in each chunk, without an id': [
    stream([
      chunk({ tool_calls: [call('read', READ_A.slice(0, 4), { index: 0 })] }),
      chunk({ tool_calls: [call('read', READ_A.slice(4), { index: 0 })] }),
      chunk({}, 'tool_calls'),
    ]),
    1,
  ],
  'arguments as an object': [stream([chunk({ tool_calls: [call('read', { path: 'a.txt' })] }), chunk({}, 'stop')]), 1],
  'a whole answer to a stream request': [
    {
      headers: { 'content-type': 'application/json; charset=utf-8' },
      body: JSON.stringify({
        id: 'x',
        object: 'chat.completion',
        choices: [
          {
            index: 0,
            message: { role: 'assistant', content: null, tool_calls: [call('read', READ_A, { id: 'c1' })] },
            finish_reason: 'tool_calls',
          },
        ],
        usage,
      }),
    },
    1,
  ],
}

for (const [server, [step, calls]] of Object.entries(calling)) {
  test(`a tool call is parsed: ${server}`, async () => {
    world.model.script([step, { text: 'It says so.' }])
    assert.equal(await world.prompt('what do they say?'), { stopReason: 'end_turn' })
    assert.equal(world.model.results().slice(-calls), ['alpha', 'beta'].slice(0, calls))
    const { messages } = world.model.asked.at(-1)!
    const request = messages.at(-1 - calls) as Reply
    assert.is(request.tool_calls.length, calls)
    // The next request tells the calls under ids of their own, each with its result.
    assert.equal(
      messages.slice(-calls).map(message => (message as Reply).tool_call_id),
      request.tool_calls.map(({ id }: Reply) => id),
    )
    assert.is(new Set(request.tool_calls.map(({ id }: Reply) => id)).size, calls)
  })
}

/** Answers of servers that say "Hello there.", some after a thought. */
const saying: Readonly<Record<string, readonly [Step, string]>> = {
  'reasoning_content before the answer': [
    stream([
      chunk({ role: 'assistant', reasoning_content: 'hm' }),
      chunk({ content: 'Hello ' }),
      chunk({ content: 'there.' }),
      chunk({}, 'stop'),
    ]),
    'hm',
  ],
  'reasoning with null content': [
    stream([chunk({ reasoning: 'hm', content: null }), chunk({ content: 'Hello there.' }, 'stop')]),
    'hm',
  ],
  'no usage, and no model or id': [
    stream([
      { choices: [{ delta: { content: 'Hello there.' } }] },
      { choices: [{ delta: {}, finish_reason: 'stop' }] },
    ]),
    '',
  ],
  'usage that is null or text': [
    stream([
      chunk({ content: 'Hello ' }, null, { usage: null }),
      chunk({ content: 'there.' }, null, { usage: { prompt_tokens: 'many' } }),
      chunk({}, 'stop'),
    ]),
    '',
  ],
  'no [DONE] after the last chunk': [stream([chunk({ content: 'Hello there.' }, 'stop')], ''), ''],
  'no finish_reason, but [DONE]': [stream([chunk({ content: 'Hello there.' })]), ''],
  'an empty finish_reason in each chunk': [
    stream([chunk({ content: 'Hello ' }, ''), chunk({ content: 'there.' }, ''), chunk({}, 'stop')]),
    '',
  ],
  'keep-alive comments and unknown fields': [
    stream([
      ': ping\n\n',
      ':\n\n',
      'event: message\nid: 1\nretry: 10\n',
      chunk({ content: 'Hello ' }),
      ': processing\n\n',
      chunk({ content: 'there.' }, 'stop'),
    ]),
    '',
  ],
  'CRLF line endings': [stream([chunk({ content: 'Hello there.' }, 'stop')], undefined, '\r\n'), ''],
  'no space after data:': [
    stream(['data:{"choices":[{"delta":{"content":"Hello there."},"finish_reason":"stop"}]}\n\n']),
    '',
  ],
  'content in parts': [stream([chunk({ content: [{ type: 'text', text: 'Hello there.' }] }, 'stop')]), ''],
  'an invalid role': [stream([chunk({ role: 'model', content: 'Hello there.' }, 'stop')]), ''],
}

for (const [server, [step, thought]] of Object.entries(saying)) {
  test(`text is parsed: ${server}`, async () => {
    world.model.script([step])
    assert.equal(await world.prompt('hi'), { stopReason: 'end_turn' })
    assert.is(world.said(), 'Hello there.')
    assert.is(world.thought(), thought)
  })
}

test('an error in a separate field of llama.cpp is passed on', async () => {
  const failure = '{"code":500,"message":"the model has no chat template","type":"server_error"}'
  for (const body of [`error: ${failure}\n\n`, `data: {"error":${failure}}\n\n`]) {
    world.model.script([{ body }, { body }, { body }])
    const error = await world.prompt('hi').catch(error => error)
    assert.match(error.message, 'the model has no chat template')
  }
})

test.run()
