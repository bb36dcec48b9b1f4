import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { agentText, openWorld, type World } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'

let world: World

test.before(async () => {
  world = await openWorld()
  await world.agent('models', { flags: '--models' })
  await world.agent('options', { flags: '--options' })
  await world.agent('refuses', { flags: '--models --no-model=large' })
  await world.agent('plain')
})
test.after(() => world.close())

const put = async (at: string, runtime: Reply, expected_revision: number | null = null) =>
  world.kernel.request('PUT', `${at}/runtime`, { expected_revision, runtime })
const provider = async (id: string) => (await world.row(id)).provider
const warned = (events: readonly Reply[]) =>
  events.filter(({ type }) => type === 'runtime_warning').map(({ content }) => content.text)

test('the model of a session is set on its agent by either method', async () => {
  const { id, at } = await world.session('models', { model: 'large' })
  assert.is(agentText(await world.prompt(at, 'model')), 'model large\n')
  assert.is((await world.row(id)).model, 'large')
  const other = await world.session('options', { model: 'LARGE', reasoning_effort: 'high', speed: 'fast' })
  const events = await world.prompt(other.at, 'model')
  assert.is(agentText(events), 'model {"model":"large","effort":"high","fast":true}\n')
  assert.equal(warned(events), [])
  const row = await world.row(other.id)
  assert.equal([row.model, row.reasoning_effort, row.speed], ['large', 'high', 'fast'])
  assert.equal(row.speed_resolution, { requested: 'fast', status: 'applied' })
  const [model] = row.acp_caps.config_options
  assert.equal([model.id, model.kind, model.current, model.values.length], ['model', 'select', 'large', 2])
})

test('an effort known only to the agent is not shown as one of the contract', async () => {
  await world.agent('own', { flags: '--options --effort=default' })
  const { id, at } = await world.session('own')
  await world.prompt(at, 'model')
  assert.is((await world.row(id)).reasoning_effort, undefined)
})

test('a setting that the agent refuses is reported', async () => {
  const none = await world.session('plain', { model: 'large', speed: 'fast' })
  assert.match(warned(await world.prompt(none.at, 'say x')).join(), /model large: it offers no choice of models/)
  assert.equal((await world.row(none.id)).speed_resolution, {
    requested: 'fast',
    status: 'unsupported',
    reason: 'capability_absent',
  })
  const other = await world.session('models', { model: 'huge' })
  const events = await world.prompt(other.at, 'model')
  assert.match(warned(events).join(), /offers no model huge, only: small, large/)
  assert.is((await world.row(other.id)).model, 'small', 'the one that works')
  const refusing = await world.session('refuses', { model: 'large' })
  assert.match(warned(await world.prompt(refusing.at, 'say x')).join(), /no such model/)
  assert.is(
    (await world.prompt(refusing.at, 'say y')).filter(({ type }) => type === 'runtime_warning').length,
    0,
    'once',
  )
})

test('the runtime of later prompts is chosen with a revision, applied at once, and reset', async () => {
  const { id, at } = await world.session('models')
  assert.is(agentText(await world.prompt(at, 'model')), 'model small\n')
  const runtime = { provider: await provider(id), model: 'large' }
  const chosen = await put(at, runtime, 0)
  assert.is(chosen.status, 200, JSON.stringify(chosen.body))
  const { session } = chosen.body
  assert.equal([session.runtime.selection_revision, session.runtime.selected], [1, runtime])
  assert.is(session.runtime.effective.model, 'large')
  assert.is(agentText(await world.prompt(at, 'model')), 'model large\n', 'the same process')
  const stale = await put(at, runtime, 0)
  assert.equal([stale.status, stale.body.code], [409, 'runtime_changed'])
  const removal = await world.kernel.request('DELETE', `${at}/runtime?expected_revision=0`)
  assert.equal([removal.status, removal.body.code], [409, 'runtime_changed'])
  const dropped = await world.kernel.request('DELETE', `${at}/runtime?expected_revision=1`)
  assert.equal([dropped.body.session.runtime.selection_revision, dropped.body.session.runtime.selected], [2, undefined])
  assert.is(agentText(await world.prompt(at, 'model')), 'model small\n', 'as it began')
  assert.is((await world.kernel.request('DELETE', `${at}/runtime`)).status, 400)
})

test('a choice is reset also where the agent began with an unoffered model', async () => {
  await world.agent('unlisted', { flags: '--models --unlisted' })
  const { id, at } = await world.session('unlisted')
  assert.is(agentText(await world.prompt(at, 'model')), 'model small\n')
  await put(at, { provider: await provider(id), model: 'large' })
  assert.is(agentText(await world.prompt(at, 'model')), 'model large\n')
  await world.kernel.request('DELETE', `${at}/runtime?expected_revision=1`)
  const events = await world.prompt(at, 'model')
  assert.equal([agentText(events), warned(events)], ['model small\n', []])
})

test('an invalid runtime is refused', async () => {
  const { id, at } = await world.session('models')
  const own = await provider(id)
  const code = async (runtime: Reply) => {
    const reply = await put(at, runtime)
    return [reply.status, reply.body.code]
  }
  assert.equal(await code({ provider: 'codex', model: 'large' }), [400, 'provider_fixed'])
  assert.equal(await code({ provider: own, model: ' ' }), [400, 'runtime_invalid'])
  assert.is((await put(at, { provider: own, model: 'huge' })).status, 200, 'nobody knows before it runs')
  assert.match(warned(await world.prompt(at, 'model')).join(), /offers no model huge/)
  assert.equal(await code({ provider: own, model: 'huge' }), [400, 'runtime_invalid'])
  assert.equal((await put(at, { provider: own, effort: 'high' })).status, 400)
})

test('the runtime of one prompt applies only to its turn, also when queued', async () => {
  const { id, at } = await world.session('models')
  const runtime = { provider: await provider(id), model: 'large' }
  await world.prompt(at, 'model')
  const send = (text: string, more = {}) => world.kernel.request('POST', `${at}/prompt`, { text, ...more })
  const gate = world.gate()
  await send(`${gate.line}\nmodel`)
  const queued = await send('model', { runtime })
  assert.is(queued.status, 202)
  const [waiting] = (await world.kernel.request('GET', `${at}/prompt/queue`)).body.inputs
  assert.equal(waiting.runtime, runtime)
  await gate.open()
  const turn = queued.body.prompt.new_turn_id
  await world.until(at, event => event.turn_id === turn && event.type === 'done')
  assert.is(agentText(await world.events(at, `?turn_id=${turn}`)), 'model large\n')
  assert.is(agentText(await world.prompt(at, 'model')), 'model small\n')
})

test('model and effort come from session, agent, then provider; a hidden one is refused', async () => {
  const curated = [
    { id: 'large', default_reasoning_effort: 'high' },
    { id: 'secret', hidden: true },
  ]
  const config = { providers: { local: { models: { default: 'large', curated } } } }
  const own = await openWorld({ config })
  try {
    await own.agent('free', { flags: '--options' })
    await own.agent('named', { flags: '--options', lines: ['model: small', 'reasoning_effort: low'] })
    await own.agent('hides', { flags: '--options', lines: ['model: secret'] })
    const runtimeOf = async (agent: string, more = {}) => {
      const { id, at } = await own.session(agent, more)
      await own.prompt(at, 'model')
      const { model, reasoning_effort } = await own.row(id)
      return [model, reasoning_effort]
    }
    assert.equal(await runtimeOf('free'), ['large', 'high'])
    assert.equal(await runtimeOf('named'), ['small', 'low'])
    assert.equal(await runtimeOf('named', { model: 'large' }), ['large', 'low'])
    assert.equal(await runtimeOf('free', { reasoning_effort: 'low' }), ['large', 'low'])
    const { agent } = (await own.kernel.request('GET', `/api/agents/free?workspace=${own.workspaceId}`)).body
    assert.equal([agent.effective_runtime.model, agent.effective_runtime.reasoning_effort], ['large', 'high'])
    assert.equal(
      [agent.effective_runtime.sources.model, agent.effective_runtime.sources.reasoning_effort],
      ['provider', 'model'],
    )
    const body = { workspace_path: own.root, agent_name: 'free', model: 'secret' }
    for (const refused of [body, { ...body, agent_name: 'hides', model: undefined }]) {
      const { status, body } = await own.kernel.request('POST', '/api/sessions', refused)
      assert.equal([status, body.code], [422, 'model_hidden'])
      assert.match(body.error, 'the model secret of local is hidden')
    }
    const { id, at } = await own.session('free')
    const runtime = { provider: (await own.row(id)).provider, model: 'secret' }
    const put = await own.kernel.request('PUT', `${at}/runtime`, { expected_revision: null, runtime })
    assert.equal([put.status, put.body.code], [400, 'runtime_invalid'])
  } finally {
    await own.close()
  }
})

test.run()
