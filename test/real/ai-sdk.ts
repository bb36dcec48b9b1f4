// The answer to a prompt as the real AI SDK reads it: `node --import tsx test/real/ai-sdk.ts`. Run by scripts/test-real.ts,
// which installs the package and says in SVC_REAL_AGENTS where.
import { request } from 'node:http'
import path from 'node:path'
import { Readable } from 'node:stream'
import { pathToFileURL } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { openWorld, type World } from '../fixtures/session-world.js'
import type { Reply } from '../harness/kernel.js'

const installed = process.env.SVC_REAL_AGENTS
if (!installed) throw new Error('usage: npm run test:real')
const module = path.join(installed, 'ai/node_modules/ai/dist/index.js')
const sdk: Reply = await import(pathToFileURL(module).href)

let world: World

test.before(async () => {
  world = await openWorld({ listen: ['socket'] })
  await world.agent('plain')
  await world.agent('asks', { permissions: 'approve-reads' })
})
test.after(() => world.close())

/** `fetch` over the daemon's socket. */
const fetchSocket = (url: string, init: { body: string; headers: Reply }) =>
  new Promise<Response>((resolve, reject) => {
    const headers = { ...Object.fromEntries(new Headers(init.headers)), 'content-length': Buffer.byteLength(init.body) }
    const options = { socketPath: path.join(world.home, 'daemon.sock'), path: url, method: 'POST', headers }
    request(options, reply => {
      const body = Readable.toWeb(reply) as ReadableStream<Uint8Array>
      resolve(new Response(body, { status: reply.statusCode ?? 0, headers: reply.headers as Record<string, string> }))
    })
      .on('error', reject)
      .end(init.body)
  })

/** The message that a chat of the SDK makes of a prompt, and the error that it reports. */
async function ask(at: string, text: string): Promise<{ message: Reply; error: Reply }> {
  const transport = new sdk.DefaultChatTransport({
    api: `${at}/prompt`,
    fetch: fetchSocket,
    headers: { accept: 'text/event-stream' },
    prepareSendMessagesRequest: () => ({ body: { text } }),
  })
  const messages = [{ id: 'm', role: 'user', parts: [{ type: 'text', text }] }]
  const stream = await transport.sendMessages({
    trigger: 'submit-message',
    chatId: 'c',
    messageId: undefined,
    messages,
  })
  let message: Reply
  let error: Reply
  for await (const state of sdk.readUIMessageStream({
    stream,
    onError: (problem: unknown) => {
      error = problem
    },
  })) {
    message = state
  }
  return { message, error }
}

const tool = (fields: object) => `update ${JSON.stringify({ sessionUpdate: 'tool_call', toolCallId: 'c', ...fields })}`
const idle = (at: string) => world.kernel.request('POST', `${at}/wait`, { timeout_ms: 10_000 })

test('every chunk is known to the SDK, and the stream ends as required', async () => {
  const { at } = await world.session('plain')
  const body = JSON.stringify({ text: 'think a\nsay b\nupdate {"sessionUpdate":"plan","entries":[]}' })
  const headers = { accept: 'text/event-stream', 'content-type': 'application/json' }
  const reply = await fetchSocket(`${at}/prompt`, { body, headers })
  const [checked, raw] = reply.body!.tee()
  const types: string[] = []
  for await (const part of sdk.parseJsonEventStream({ stream: checked, schema: sdk.uiMessageChunkSchema })) {
    assert.ok(part.success, JSON.stringify(part))
    types.push(part.value.type)
  }
  assert.equal([types[0], types.at(-1)], ['start', 'finish'])
  assert.match(await new Response(raw).text(), /\n\ndata: \[DONE\]\n\n$/)
})

test('texts, thoughts, tools and questions are the parts of one message', async () => {
  const { at } = await world.session('asks')
  const options = [{ optionId: 'no', name: 'no', kind: 'reject_once' }]
  const question = `ask ${JSON.stringify({ toolCall: { toolCallId: 'p', title: 'rm', kind: 'delete' }, options })}`
  const lines = [
    'think hm',
    'say one',
    tool({ title: 'T', kind: 'read', status: 'pending', rawInput: { x: 1 } }),
    tool({ status: 'completed', rawOutput: 'out' }),
    tool({ toolCallId: 'd', title: 'D', status: 'failed' }),
    question,
    'say two',
  ]
  const reply = ask(at, lines.join('\n'))
  const pending = await world.until(at, event => event.content.status === 'pending' && event.type === 'permission')
  const { request_id } = pending.content
  await world.kernel.request('POST', `${at}/approve`, { request_id, turn_id: pending.turn_id, decision: 'reject-once' })
  const { message, error } = await reply
  assert.is(error, undefined)
  const parts = message.parts.filter(({ type }: Reply) => type !== 'step-start')
  assert.equal(
    parts.map((part: Reply) => [part.type, part.state]),
    [
      ['reasoning', 'done'],
      ['text', 'done'],
      ['dynamic-tool', 'output-available'],
      ['dynamic-tool', 'output-error'],
      ['data-permission', undefined],
      ['text', 'done'],
    ],
  )
  assert.equal([parts[2].input, parts[2].output, parts[4].data.status], [{ x: 1 }, 'out', 'resolved'])
  assert.match(parts.at(-1).text, /two\n$/)
  assert.is(message.metadata.stop_reason, 'end_turn')
  await idle(at)
})

test('a failed turn is an error, and a canceled one an end', async () => {
  const { at } = await world.session('plain')
  const failed = await ask(at, 'say x\nerror -32000 no model')
  assert.match(String(failed.error), /no model/)
  await idle(at)
  const reply = ask(at, 'say y\nhang')
  await world.until(at, event => event.content.text === 'y\n')
  await world.kernel.request('POST', `${at}/prompt/cancel`)
  const { message, error } = await reply
  assert.is(error, undefined)
  assert.match(JSON.stringify(message.parts), /y\\n/)
  await idle(at)
  const stopped = ask(at, 'say z\nhang')
  await world.until(at, event => event.content.text === 'z\n')
  await world.kernel.request('POST', `${at}/stop`)
  await stopped
})

test.run()
