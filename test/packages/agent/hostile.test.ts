// timeout: 120s
import { symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type AgentWorld, openAgent } from '../../fixtures/agent-world.js'

let world: AgentWorld

test.before(async () => {
  world = await openAgent({ 'a.txt': 'a\n' })
})
test.before.each(() => world.clear())
test.after(() => world.close())

test('an unknown tool call is answered with the names of the known tools', async () => {
  world.model.script([{ calls: [{ name: 'rm_rf', input: { path: '/' } }] }, { text: 'ok' }])
  assert.equal(await world.prompt('go'), { stopReason: 'end_turn' })
  assert.match(
    world.model.results().at(-1) ?? '',
    'unknown tool "rm_rf"; available tools: read, grep, glob, edit, write, run, plan',
  )
  assert.is(world.call().status, 'failed')
})

test('arguments that are not a JSON object are answered with an error', async () => {
  for (const raw of ['{"path": ', 'nonsense', '[1]', '7', '"a.txt"', '']) {
    world.model.script([{ calls: [{ name: 'read', raw }] }, { text: 'ok' }])
    assert.equal(await world.prompt('go'), { stopReason: 'end_turn' }, raw)
    assert.match(world.model.results().at(-1) ?? '', /the arguments are not a JSON object|path has to be a text/, raw)
  }
})

test('a repeating model is warned and then stopped', async () => {
  world.model.script(() => ({ calls: [{ name: 'read', input: { path: 'a.txt' } }] }))
  const before = world.model.asked.length
  assert.equal(await world.prompt('go'), { stopReason: 'max_turn_requests' })
  assert.is(world.model.asked.length - before, 6)
  assert.match(world.model.results().at(-1) ?? '', 'the same call gave the same result 5 times; do something else')
  assert.match(world.said(), 'I stopped: the model repeats the call of read with the same result.')
})

test('a model with only invalid calls is stopped', async () => {
  world.model.script((_, at) => ({ calls: [{ name: `tool_${at}` }] }))
  assert.equal(await world.prompt('go'), { stopReason: 'max_turn_requests' })
  assert.match(world.said(), 'I stopped: 10 calls in a row could not be executed.')
})

test('a turn has a limited number of steps', async () => {
  world.model.script((_, at) => ({ calls: [{ name: 'glob', input: { pattern: `x${at}` } }] }))
  const before = world.model.asked.length
  assert.equal(await world.prompt('go'), { stopReason: 'max_turn_requests' })
  assert.is(world.model.asked.length - before, 100)
  assert.match(world.said(), 'I stopped after 100 steps.')
})

test('several calls of one answer with repeated ids each get their result', async () => {
  const read = { name: 'read', input: { path: 'a.txt' }, id: 'same' }
  world.model.script([
    { calls: [read, { name: 'glob', input: { pattern: '*' }, id: 'same' }] },
    { calls: [read] },
    { text: 'ok' },
  ])
  assert.equal(await world.prompt('go'), { stopReason: 'end_turn' })
  assert.equal(world.model.results().slice(-3), ['a', 'a.txt', 'a'])
  const ids = world.updates
    .filter(({ sessionUpdate }) => sessionUpdate === 'tool_call')
    .map(({ toolCallId }) => toolCallId)
  assert.is(new Set(ids).size, 3)
})

test('arguments of 10 MB are refused with an error, and a large written file is not sent again', async () => {
  world.model.script([{ calls: [{ name: 'write', input: { path: 'big.txt', content: 'x'.repeat(10_000_000) } }] }])
  const error = await world.prompt('go').catch(error => error)
  assert.match(error.message, /the model sent more than 2000000 characters of arguments|sent more than 16 MB/)
  world.model.script([
    { calls: [{ name: 'write', input: { path: 'big.txt', content: 'y'.repeat(1_000_000) } }] },
    { text: 'ok' },
  ])
  assert.equal(await world.prompt('go'), { stopReason: 'end_turn' })
  assert.is(world.file('big.txt').length, 1_000_000)
  assert.ok(JSON.stringify(world.model.asked.at(-1)?.messages).length < 200_000)
})

test('instructions of the workspace are bounded, and links to the outside are skipped', async () => {
  const other = await openAgent({ 'CLAUDE.md': `start ${'x'.repeat(500_000)} end` })
  writeFileSync(path.join(path.dirname(other.root), 'secret.md'), 'the secret of the person\n')
  symlinkSync('../secret.md', path.join(other.root, 'AGENTS.md'))
  await other.prompt('hi')
  const system = String(other.model.asked.at(-1)?.messages[0]?.content)
  assert.match(system, 'start xxx')
  assert.match(system, 'characters left out')
  assert.ok(system.length < 60_000, `${system.length}`)
  assert.not.match(system, 'the secret of the person')
  await other.close()
})

test('a second prompt during a turn is refused, and the turn continues', async () => {
  world.model.script([{ text: 'slow answer here', dripMs: 200 }])
  const first = world.prompt('one')
  const error = await world.prompt('two').catch(error => error)
  assert.match(error.message, 'a turn is running in this session')
  assert.equal(await first, { stopReason: 'end_turn' })
})

test('an unknown session and an invalid folder are refused', async () => {
  const ask = (method: string, params: object) => world.request(method, params).catch(error => error)
  assert.ok((await ask('session/prompt', { sessionId: 'svc-x', prompt: [] })).message)
  assert.match(
    (await ask('session/load', { sessionId: '../../etc/passwd', cwd: world.root, mcpServers: [] })).message,
    /not found/i,
  )
  assert.match((await ask('session/new', { cwd: 'relative', mcpServers: [] })).message, 'absolute')
  assert.match((await ask('session/new', { cwd: '/nowhere/at/all', mcpServers: [] })).message, 'a folder that exists')
})

test.run()
