import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { AGENT, agentText, openWorld, type World } from '../../../fixtures/session-world.js'
import { type Reply, temporaryFolder } from '../../../harness/kernel.js'

let world: World

/** Two programs of the catalog that the fixture stands for, and an agent of the first one. */
test.before(async () => {
  const bin = await temporaryFolder('bin')
  const program = (name: string, flags: string) =>
    writeFileSync(path.join(bin, name), `#!/bin/sh\nACTING=${name} exec '${process.execPath}' '${AGENT}' ${flags}\n`, {
      mode: 0o755,
    })
  program('claude-agent-acp', '--models')
  program('codex-acp', '--options')
  world = await openWorld({ env: { PATH: `${bin}:${process.env.PATH}`, HOME: bin } })
  const folder = path.join(world.root, '.svc/agents/either')
  mkdirSync(folder, { recursive: true })
  const head = 'name: either\nprovider: claude\nmodel: small\npermissions: approve-reads'
  writeFileSync(path.join(folder, 'AGENT.md'), `---\n${head}\n---\nYou do what you are told.\n`)
  await world.agent('commanded')
})
test.after(() => world.close())

const put = async (at: string, runtime: Reply, expected_revision: number | null = null) =>
  world.kernel.request('PUT', `${at}/runtime`, { expected_revision, runtime })
const acting = async (at: string) => agentText(await world.prompt(at, 'env ACTING')).trim()
const markers = async (at: string, marker: string) =>
  (await world.events(at)).filter(({ content }) => content.marker === marker).map(({ content }) => content)

test('a running session switches to another provider with its conversation, and back', async () => {
  const { id, at } = await world.session('either', { model: 'large' })
  await world.prompt(at, 'say the word is heron')
  assert.is(await acting(at), 'ACTING=claude-agent-acp')
  assert.is(agentText(await world.prompt(at, 'model')), 'model large\n')

  const chosen = await put(at, { provider: 'codex', model: 'large' }, 0)
  assert.is(chosen.status, 200, JSON.stringify(chosen.body))
  const { runtime, provider } = chosen.body.session
  assert.equal([runtime.selection_revision, runtime.selected.provider, provider], [1, 'codex', 'claude'], 'not started')
  assert.equal([(await put(at, { provider: 'claude' }, 0)).body.code], ['runtime_changed'])
  const output = agentText(await world.prompt(at, 'env ACTING\nmodel\necho'))
  assert.match(output, /^ACTING=codex-acp\nmodel \{"model":"large"/)
  assert.match(output, /Until now, claude worked on this/)
  assert.match(output, /the word is heron/)
  const row = await world.row(id)
  assert.equal([row.provider, row.model, row.state], ['codex', 'large', 'active'])
  assert.equal(
    (await markers(at, 'provider_changed')).map(({ from, to }) => [from, to]),
    [['claude', 'codex']],
  )

  // The choice outlives the daemon.
  await world.restart()
  assert.is(await acting(at), 'ACTING=codex-acp')
  assert.is((await markers(at, 'session_restarted')).length, 1)

  const dropped = await world.kernel.request('DELETE', `${at}/runtime?expected_revision=1`)
  assert.is(dropped.status, 200)
  const back = agentText(await world.prompt(at, 'env ACTING\nmodel'))
  assert.is(back, 'ACTING=claude-agent-acp\nmodel large\n', 'as it began')
  assert.is((await world.row(id)).provider, 'claude')
})

test('a switch of the provider waits for the running turn', async () => {
  const { at } = await world.session('either')
  assert.is(await acting(at), 'ACTING=claude-agent-acp')
  const { body } = await world.kernel.request('POST', `${at}/prompt`, { text: 'say begun\nhang' })
  const turn = body.prompt.new_turn_id
  await world.until(at, event => event.turn_id === turn && event.type === 'agent_message')
  assert.is((await put(at, { provider: 'codex' })).status, 200)
  assert.is(
    (await world.events(at)).some(event => event.turn_id === turn && event.type === 'done'),
    false,
  )
  await world.kernel.request('POST', `${at}/prompt/cancel`)
  await world.until(at, event => event.turn_id === turn && event.type === 'done')
  assert.is(await acting(at), 'ACTING=codex-acp')
})

test('an impossible switch is refused with the reason', async () => {
  const { at } = await world.session('either')
  const refused = async (at: string, runtime: Reply) => {
    const { status, body } = await put(at, runtime)
    return [status, body.code, body.error]
  }
  const [, code, why] = await refused(at, { provider: 'gemini' })
  assert.equal([code, /gemini cannot be started: .*PATH/.test(why)], ['runtime_invalid', true], why)
  assert.equal((await refused(at, { provider: 'no-such' })).slice(0, 2), [400, 'runtime_invalid'])
  const commanded = await world.session('commanded')
  assert.equal((await refused(commanded.at, { provider: 'codex' })).slice(0, 2), [400, 'provider_fixed'])
  const ofTurn = { text: 'say no', runtime: { provider: 'codex' } }
  const prompted = await world.kernel.request('POST', `${at}/prompt`, ofTurn)
  assert.equal([prompted.status, prompted.body.code], [400, 'provider_fixed'])
})

test.run()
