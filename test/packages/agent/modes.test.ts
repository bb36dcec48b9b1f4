import { existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type AgentWorld, openAgent } from '../../fixtures/agent-world.js'

let world: AgentWorld
test.after.each(() => world.close())

const setMode = (modeId: string) => world.request('session/set_mode', { sessionId: world.opened.sessionId, modeId })
const run = { calls: [{ name: 'run', input: { command: 'echo ran > ran.txt' } }] }

test('plan mode changes nothing, runs nothing and asks nothing', async () => {
  world = await openAgent({ 'a.txt': 'a\n' })
  assert.equal(
    world.opened.modes.availableModes.map(({ id }: { id: string }) => id),
    ['ask', 'plan', 'auto'],
  )
  await setMode('plan')
  world.model.script([
    run,
    { calls: [{ name: 'write', input: { path: 'b.txt', content: 'b' } }] },
    { text: 'I would.' },
  ])
  await world.prompt('go')
  for (const result of world.model.results()) assert.match(result, 'this is plan mode')
  assert.match(String(world.model.asked[0]?.messages[0]?.content), 'say what you would do')
  assert.is(world.questions.length, 0)
  assert.not(existsSync(path.join(world.root, 'ran.txt')))
  assert.not(existsSync(path.join(world.root, 'b.txt')))
})

test('auto mode asks nothing', async () => {
  world = await openAgent()
  await setMode('auto')
  world.model.script([run])
  await world.prompt('go')
  assert.is(world.questions.length, 0)
  assert.is(world.file('ran.txt'), 'ran\n')
})

test('an unknown mode is refused with the list of modes', async () => {
  world = await openAgent()
  const error = await setMode('yolo').catch(error => error)
  assert.match(error.message, 'ask, plan, auto')
})

test('without client methods files are read and written directly, and commands run as processes', async () => {
  world = await openAgent({ 'a.txt': 'old\n' }, { files: false, terminal: false })
  writeFileSync(path.join(path.dirname(world.root), 'outside.txt'), 'x')
  world.model.script([
    { calls: [{ name: 'read', input: { path: 'a.txt' } }] },
    { calls: [{ name: 'edit', input: { path: 'a.txt', old_text: 'old', new_text: 'new' } }] },
    { calls: [{ name: 'read', input: { path: '../outside.txt' } }] },
    { calls: [{ name: 'run', input: { command: 'cat a.txt; echo "[$OPENAI_API_KEY]"; exit 4' } }] },
    { calls: [{ name: 'run', input: { command: 'sleep 30 & echo back', timeout_seconds: 20 } }] },
    { calls: [{ name: 'run', input: { command: 'echo slow; sleep 30', timeout_seconds: 1 } }] },
  ])
  await world.prompt('go')
  const [, , outside, ran, background, slow] = world.model.results()
  assert.is(world.file('a.txt'), 'new\n')
  assert.match(outside ?? '', 'is outside of the workspace')
  assert.is(ran, 'new\n[]\n[exit code 4]')
  assert.is(background, 'back\n[exit code 0]')
  assert.is(slow, 'slow\n[killed after the timeout of 1 s]')
  assert.equal(new Set(world.requests.map(({ method }) => method)), new Set(['session/request_permission']))
})

test('a refusal of the client is reported as text, also during a search', async () => {
  world = await openAgent(
    { 'a.txt': 'needle\n' },
    { refuse: method => (method.startsWith('fs/') ? 'reading is not allowed' : undefined) },
  )
  world.model.script([
    { calls: [{ name: 'read', input: { path: 'a.txt' } }] },
    { calls: [{ name: 'grep', input: { pattern: 'needle' } }] },
    { calls: [{ name: 'write', input: { path: 'b.txt', content: 'b' } }] },
  ])
  await world.prompt('go')
  for (const result of world.model.results()) assert.is(result, 'not done: the client refuses: reading is not allowed')
})

test('the model of a session is set by the option and by the older method, and kept', async () => {
  world = await openAgent({}, { models: [{ id: 'small' }, { id: 'large', max_model_len: 8192 }] })
  const { sessionId } = world.opened
  assert.is(world.opened.configOptions[0].currentValue, 'small')
  assert.is(world.opened.models.currentModelId, 'small')
  const set = await world.request('session/set_config_option', { sessionId, configId: 'model', value: 'large' })
  assert.is(set.configOptions[0].currentValue, 'large')
  await world.prompt('hi')
  assert.is(world.model.asked.at(-1)?.model, 'large')
  assert.is(world.updates.find(({ sessionUpdate }) => sessionUpdate === 'usage_update').size, 8192)
  await world.request('session/set_model', { sessionId, modelId: 'other' })
  await world.prompt('hi')
  assert.is(world.model.asked.at(-1)?.model, 'other')
  assert.is((await world.again()).configOptions[0].currentValue, 'other')
})

test('the environment names the default model', async () => {
  world = await openAgent({}, { env: { OPENAI_MODEL: 'by-name', SVC_MODEL: 'by-session' } })
  await world.prompt('hi')
  assert.is(world.model.asked.at(-1)?.model, 'by-session')
})

test.run()
