// proof, timeout: 120s
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type AgentWorld, openAgent } from '../../fixtures/agent-world.js'

let world: AgentWorld
test.after.each(() => world.close())

async function until(what: string, wanted: () => boolean): Promise<void> {
  for (const end = Date.now() + 60_000; !wanted(); await sleep(20)) assert.ok(Date.now() < end, `never: ${what}`)
}

test('a turn is canceled while it streams, waits for the endpoint, asks, and runs a command', async () => {
  world = await openAgent({}, { answer: ({ toolCall }) => (toolCall.title === 'sleep 60' ? 'allow_once' : 'never') })
  const stages: readonly (readonly [string, object, () => boolean])[] = [
    ['streams', { text: 'word '.repeat(500), dripMs: 20 }, () => world.said() !== ''],
    ['waits for the endpoint', { sleepMs: 30_000 }, () => world.model.asked.length > requestCount],
    ['asks', { calls: [{ name: 'write', input: { path: 'b.txt', content: 'b' } }] }, () => world.questions.length > 0],
    [
      'runs a command',
      { calls: [{ name: 'run', input: { command: 'sleep 60' } }] },
      () => world.requests.some(({ method }) => method === 'terminal/wait_for_exit'),
    ],
    ['waits for a rate limit', { status: 429, headers: { 'retry-after': '14' } }, () => world.thought() !== ''],
  ]
  let requestCount = 0
  for (const [stage, step, reached] of stages) {
    world.clear()
    requestCount = world.model.asked.length
    world.model.script([step])
    const turn = world.prompt(stage)
    await until(stage, reached)
    const startedAt = performance.now()
    await world.cancel()
    assert.equal(await turn, { stopReason: 'cancelled' }, stage)
    assert.ok(performance.now() - startedAt < 10_000, stage)
  }
  assert.not(existsSync(path.join(world.root, 'b.txt')))
  // Each call has a result, or the next request would be refused.
  world.model.script([{ text: 'fine' }])
  assert.equal(await world.prompt('next'), { stopReason: 'end_turn' })
  const { messages } = world.model.asked.at(-1)!
  const calls = messages.flatMap(({ tool_calls: calls = [] }) => calls as readonly { id: string }[])
  const results = messages.filter(({ role }) => role === 'tool')
  assert.is(calls.length, 2)
  assert.equal(
    results.map(({ content }) => content),
    ['cancelled by the person', 'cancelled by the person'],
  )
})

test('the output of a canceled answer stays, and a canceled prompt is not sent with the next one', async () => {
  world = await openAgent()
  world.model.script([{ text: 'word '.repeat(500), dripMs: 20 }, { sleepMs: 30_000 }, { text: 'fine' }])
  for (const reached of [() => world.said() !== '', () => world.model.asked.length > 1]) {
    const turn = world.prompt('go')
    await until('the turn is on its way', reached)
    await world.cancel()
    await turn
  }
  await world.prompt('next')
  const requests = world.model.asked
    .at(-1)!
    .messages.slice(1)
    .map(({ role, content }) => [role, String(content).slice(0, 4)])
  assert.equal(requests.slice(1), [
    ['assistant', 'word'],
    ['user', 'go'],
    ['assistant', '[can'],
    ['user', 'next'],
  ])
})

test('a conversation is loaded in a new process and replayed', async () => {
  world = await openAgent({ 'a.txt': 'alpha\n' })
  world.model.script([{ calls: [{ name: 'read', input: { path: 'a.txt' } }] }, { text: 'It says alpha.' }])
  await world.prompt('what does it say?')
  world.clear()
  await world.again()
  assert.equal(
    world.updates.map(({ sessionUpdate, content, title }) => [sessionUpdate, title ?? content.text]),
    [
      ['user_message_chunk', 'what does it say?'],
      ['tool_call', 'read'],
      ['agent_message_chunk', 'It says alpha.'],
    ],
  )
  world.model.script([
    { calls: [{ name: 'edit', input: { path: 'a.txt', old_text: 'alpha', new_text: 'beta' } }] },
    { text: 'ok' },
  ])
  await world.prompt('and now?')
  const { messages } = world.model.asked.at(-2)!
  assert.equal(
    messages.slice(1).map(({ role }) => role),
    ['user', 'assistant', 'tool', 'assistant', 'user'],
  )
  // Another process may have written meanwhile: what was read is forgotten.
  assert.match(world.model.results().at(-1) ?? '', 'has not been read yet')
})

test('session/resume continues without a replay', async () => {
  world = await openAgent()
  await world.prompt('one')
  world.clear()
  await world.again('resume')
  assert.equal(world.updates, [])
  await world.prompt('two')
  assert.is(world.model.asked.at(-1)?.messages.length, 4)
})

test('session/fork starts another conversation with the same history, also from the disk', async () => {
  world = await openAgent()
  const first = world.opened.sessionId
  world.model.script([{ text: 'noted' }])
  await world.prompt('remember 42')
  const place = { cwd: world.root, mcpServers: [] }
  const forked = await world.request('session/fork', { ...place, sessionId: first })
  assert.is.not(forked.sessionId, first)
  const say = (sessionId: string, text: string) =>
    world.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] })
  const said = () =>
    world.model.asked
      .at(-1)!
      .messages.slice(1)
      .map(({ content }) => content)
  world.model.script([{ text: 'one' }, { text: 'two' }, { text: 'three' }])
  await say(forked.sessionId, 'in the fork')
  assert.equal(said(), ['remember 42', 'noted', 'in the fork'])
  await say(first, 'in the first')
  assert.equal(said(), ['remember 42', 'noted', 'in the first'])
  await world.again('resume')
  const late = await world.request('session/fork', { ...place, sessionId: forked.sessionId })
  await say(late.sessionId, 'later')
  assert.equal(said(), ['remember 42', 'noted', 'in the fork', 'one', 'later'])
  const error = await world.request('session/fork', { ...place, sessionId: 'svc-none' }).catch(error => error)
  assert.match(error.message, /not found/i)
})

test('the conversation is whole after SIGKILL in the middle of a command', async () => {
  world = await openAgent()
  world.model.script([{ text: 'I run it.', calls: [{ name: 'run', input: { command: 'sleep 30' } }] }])
  const turn = world.prompt('go').catch(error => error)
  await until('it runs', () => world.requests.some(({ method }) => method === 'terminal/wait_for_exit'))
  await world.kill()
  assert.ok((await turn) instanceof Error)
  await world.again()
  world.model.script([{ text: 'fine' }])
  assert.equal(await world.prompt('go on'), { stopReason: 'end_turn' })
  assert.match(world.model.results().at(-1) ?? '', 'not executed: the turn ended first')
})

test('a broken or foreign transcript is not loaded', async () => {
  world = await openAgent()
  await world.prompt('one')
  const file = path.join(world.state, readdirSync(world.state)[0] ?? '')
  const text = readFileSync(file, 'utf8')
  for (const broken of [text.slice(0, -5), '[]', '{"version":2}', text.replace('"role":"user"', '"role":"root"')]) {
    writeFileSync(file, broken)
    const error = await world.again().catch(error => error)
    assert.match(error.message, /not found/i, broken.slice(0, 40))
  }
  writeFileSync(file, text)
  await world.again()
})

test('the end of stdin ends the process and its commands', async () => {
  world = await openAgent({}, { terminal: false })
  world.model.script([{ calls: [{ name: 'run', input: { command: 'echo $$ > pid.txt; sleep 60' } }] }])
  world.prompt('go').catch(() => {})
  await until('it runs', () => existsSync(path.join(world.root, 'pid.txt')) && world.file('pid.txt') !== '')
  const gone = new Promise(resolve => world.child.once('exit', resolve))
  world.child.stdin?.end()
  assert.is(await gone, 0)
  assert.throws(() => process.kill(Number(world.file('pid.txt')), 0))
})

test('a conversation near the limit is summarized and continues', async () => {
  world = await openAgent(
    { 'long.txt': 'words and more words\n'.repeat(300) },
    { env: { OPENAI_CONTEXT_WINDOW: '6000' } },
  )
  world.model.script(({ tools, messages }) => {
    if (tools.length === 0) return { text: 'They want the number 42.' }
    const last = messages.at(-1)
    return last?.role === 'user' ? { calls: [{ name: 'read', input: { path: 'long.txt' } }] } : { text: 'Read it.' }
  })
  for (const prompt of ['remember 42', 'two', 'three', 'four', 'five', 'six']) {
    assert.equal(await world.prompt(prompt), { stopReason: 'end_turn' }, prompt)
  }
  assert.match(world.thought(), 'its older part becomes a summary')
  const { messages } = world.model.asked.at(-1)!
  assert.match(String(messages[1]?.content), 'They want the number 42.')
  assert.ok(JSON.stringify(messages).length < 6000 * 4, `${JSON.stringify(messages).length}`)
})

test('a conversation is shortened also when the model gives no summary', async () => {
  world = await openAgent(
    { 'long.txt': 'words and more words\n'.repeat(300) },
    { env: { OPENAI_CONTEXT_WINDOW: '6000' } },
  )
  world.model.script(({ tools, messages }) => {
    if (tools.length === 0) return { status: 400 }
    return messages.at(-1)?.role === 'user'
      ? { calls: [{ name: 'read', input: { path: 'long.txt' } }] }
      : { text: 'Read it.' }
  })
  for (const prompt of ['remember 42', 'two', 'three', 'four', 'five', 'six']) await world.prompt(prompt)
  assert.match(String(world.model.asked.at(-1)?.messages[1]?.content), 'The person: remember 42')
})

test.run()
