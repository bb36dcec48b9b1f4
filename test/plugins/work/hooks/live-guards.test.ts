import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { AGENT, agentText, eventually } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'
import { openScene, type Scene } from './scene.js'

let scene: Scene
let deny: string

test.before(async () => {
  scene = await openScene()
  deny = await scene.program('deny.sh', '#!/bin/sh\ncat > /dev/null\necho "not allowed" >&2\nexit 2\n')
})
test.after(() => scene.close())

const options = ['allow_once', 'reject_once'].map(kind => ({ optionId: kind, kind, name: kind }))
const ask = (title: string, kind = 'execute') =>
  `ask ${JSON.stringify({ toolCall: { toolCallId: title, kind, title, rawInput: { command: title } }, options })}`
const guard = () => ({
  ...{ event: 'permission.request', required: true, matcher: { tool_name: 'execute' }, timeout: '30s', command: deny },
})
const remove = (name: string) => scene.kernel.request('DELETE', `/api/settings/hooks/${name}`)
const listed = async (name: string): Promise<Reply> =>
  (await scene.kernel.request('GET', '/api/hooks/catalog')).body.hooks.find((hook: Reply) => hook.name === name)

/** How a guard comes while an agent runs, and how it goes. */
const WAYS: Readonly<
  Record<string, { readonly add: () => Promise<unknown>; readonly remove: () => Promise<unknown> }>
> = {
  'a change of the settings': { add: () => scene.configure({ late: guard() }), remove: () => remove('late') },
  'a record': {
    add: () => record('PUT', { scope: { kind: 'global' }, expected_version: 0, spec: { name: 'late', ...guard() } }),
    remove: () => record('DELETE', { expected_version: 1 }),
  },
  'a reload of config.json': { add: () => written({ late: guard() }), remove: () => written({}) },
}

async function record(method: 'PUT' | 'DELETE', body: Reply) {
  const { status, body: reply } = await scene.kernel.request(method, '/api/resources/hook.binding/hok_late', body)
  assert.ok(status < 300, JSON.stringify(reply))
}

async function written(hooks: Reply) {
  await writeFile(path.join(scene.home, 'config.json'), JSON.stringify({ hooks }))
  const { status, body } = await scene.kernel.request('POST', '/api/settings/reload')
  assert.is(status, 200, JSON.stringify(body))
}

for (const [way, { add, remove }] of Object.entries(WAYS))
  test(`a guard added by ${way} while an agent runs applies from the next request on`, async () => {
    await scene.agent('free', { flags: '--modes=default,bypassPermissions' })
    const { at } = await scene.session('free')
    assert.is(agentText(await scene.prompt(at, 'mode')), 'mode bypassPermissions\n')
    const gate = scene.gate()
    const turn = scene.prompt(at, [gate.line, ask('touch x')].join('\n'))
    await scene.until(at, event => event.type === 'user_message' && event.content.text?.includes('touch x'))
    await add()
    await eventually(() => listed('late'), 'the guard in the list')
    await gate.open()
    assert.is(agentText(await turn), 'answer: reject_once\n')
    const mode = (wanted: string) =>
      eventually(async () => agentText(await scene.prompt(at, 'mode')) === `mode ${wanted}\n`, `the mode ${wanted}`)
    await mode('default')
    assert.is((await listed('late')).warnings, undefined, 'it holds')
    await remove()
    await eventually(async () => !(await listed('late')), 'the end of the guard')
    assert.is(agentText(await scene.prompt(at, ask('touch x'))), 'answer: allow_once\n')
    await mode('bypassPermissions')
  })

test('a required hook on tool calls applies from the next call on', async () => {
  await scene.agent('writer')
  const { at } = await scene.session('writer')
  const file = { path: path.join(scene.root, 'made.txt'), content: 'made' }
  const write = `call fs/write_text_file ${JSON.stringify(file)}`
  const refused = agentText(await scene.prompt(at, write))
  assert.not.match(refused, /not allowed/)
  await scene.configure({ calls: { event: 'tool.pre_call', required: true, command: deny, timeout: '30s' } })
  assert.match(agentText(await scene.prompt(at, write)), /not allowed/)
  await remove('calls')
})

test('the list says when a guard applies for an agent that cannot be kept asking', async () => {
  await scene.agent('reckless', { flags: '--modes=bypassPermissions,acceptEdits' })
  const { id, at } = await scene.session('reckless')
  await scene.prompt(at, 'say hello')
  await scene.configure({ late: guard() })
  const { warnings } = await eventually(async () => {
    const hook = await listed('late')
    return hook.warnings && hook
  }, 'the warning')
  assert.is(warnings.length, 1)
  assert.match(warnings[0], new RegExp(`applies in session ${id} after its agent restarts`))
  assert.match(warnings[0], /no mode in which it asks \(bypassPermissions, acceptEdits\)/)
  const doctor = await scene.kernel.request('GET', '/api/doctor?only=hooks')
  const [item] = doctor.body.items
  assert.equal([item.code, item.severity, item.id], ['hook_guard_pending', 'warning', 'hook:late'])
  assert.is(item.message, warnings[0])

  // The first edit without a question ends the process.
  const done = { sessionUpdate: 'tool_call', toolCallId: 'u1', title: 'Edit a.js', kind: 'edit', status: 'completed' }
  await scene.prompt(at, `update ${JSON.stringify(done)}\nhang`)
  const row = await eventually(async () => {
    const now = await scene.row(id)
    return now.state === 'stopped' && now
  }, 'the end of the session')
  assert.match(row.failure.summary, /without asking, although the required hook late must approve/)
  assert.is((await listed('late')).warnings, undefined)
  await remove('late')
})

test('an agent whose asking mode has a separate id is kept asking', async () => {
  const mode = 'https://agentclientprotocol.com/protocol/session-modes#agent'
  const program = path.join(scene.root, 'copilot')
  await writeFile(program, `#!/bin/sh\nexec ${process.execPath} ${AGENT} '--modes=${mode},other'\n`, { mode: 0o755 })
  await scene.agent('odd', { command: program })
  await scene.configure({ early: guard() })
  const { at } = await scene.session('odd')
  assert.is(agentText(await scene.prompt(at, ask('touch x'))), 'answer: reject_once\n')
  assert.is(agentText(await scene.prompt(at, 'mode')), `mode ${mode}\n`)
  await remove('early')
})

test('an agent known to never ask is named as well', async () => {
  const program = path.join(scene.root, 'pi-acp')
  await writeFile(program, `#!/bin/sh\nexec ${process.execPath} ${AGENT}\n`, { mode: 0o755 })
  await scene.agent('silent', { command: program })
  const { id, at } = await scene.session('silent')
  await scene.prompt(at, 'say hello')
  await scene.configure({ late: guard() })
  const { warnings } = await eventually(async () => {
    const hook = await listed('late')
    return hook.warnings && hook
  }, 'the warning')
  assert.match(warnings[0], new RegExp(`applies in session ${id} after its agent restarts: Pi never asks`))
  await remove('late')
})

test.run()
