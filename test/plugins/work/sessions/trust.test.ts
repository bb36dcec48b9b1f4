import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { agentText, eventually, openWorld, type World } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'

const AGENT = fileURLToPath(new URL('../../../fixtures/acp-agent.mjs', import.meta.url))
let world: World

test.before(async () => {
  world = await openWorld({ config: { session: { permissions: { timeout: '5s' } } } })
  const folder = path.join(world.root, '.svc', 'agents', 'plain')
  await mkdir(folder, { recursive: true })
  await writeFile(
    path.join(folder, 'AGENT.md'),
    `---\nname: plain\ncommand: '${process.execPath} ${AGENT}'\n---\nDo it.\n`,
  )
  await world.agent('trusted', { permissions: 'approve-all' })
})
test.after(() => world.close())

const edit = (id: string, path: string) => ({
  toolCallId: id,
  title: `Edit ${path}`,
  kind: 'edit',
  content: [{ type: 'diff', path, oldText: 'one\ntwo\n', newText: 'one\n2\n' }],
})
const options = ['allow_once', 'reject_once'].map(kind => ({ optionId: kind, name: kind, kind }))
const ask = (toolCall: object) => `ask ${JSON.stringify({ toolCall, options })}`
const update = (fields: object) => `update ${JSON.stringify(fields)}`

test('an agent without a mode may read and asks for the rest; the effective mode is shown', async () => {
  const { body } = await world.kernel.request('GET', `/api/agents?workspace=${world.workspaceId}`)
  const modes = Object.fromEntries(body.agents.map((agent: Reply) => [agent.name, agent.effective_permissions]))
  assert.is(modes.plain, 'approve-reads')
  assert.is(modes.trusted, 'approve-all')
  const { id, at } = await world.session('plain')
  assert.is((await world.row(id)).permissions, 'approve-reads')
  const read = { toolCallId: 'r', title: 'Read', kind: 'read' }
  assert.match(agentText(await world.prompt(at, ask(read))), /answer: allow_once/)
  assert.match(agentText(await world.prompt(at, ask(edit('e', 'a.js')))), /answer: reject_once/, 'nobody answered')
})

test('a session may override the mode of its agent, and keeps it on restart', async () => {
  const { id, at } = await world.session('plain', { permissions: 'approve-all' })
  assert.is((await world.row(id)).permissions, 'approve-all')
  assert.match(agentText(await world.prompt(at, ask(edit('e', 'a.js')))), /answer: allow_once/)
  await world.restart()
  assert.match(agentText(await world.prompt(at, ask(edit('f', 'a.js')))), /answer: allow_once/)
  assert.is((await world.row(id)).permissions, 'approve-all')
  const wrong = await world.kernel.request('POST', '/api/sessions', {
    workspace: world.workspaceId,
    permissions: 'yes',
  })
  assert.is(wrong.status, 400)
})

test('a question has its diff; session and inbox show it until it expires, which the turn reports', async () => {
  const { id, at } = await world.session('plain')
  const sent = await world.kernel.request('POST', `${at}/prompt`, { text: ask(edit('e', 'a.js')) })
  const waiting = await eventually(async () => {
    const row = await world.row(id)
    return row.badge === 'waiting' && row
  }, 'the badge')
  assert.is(waiting.state, 'active')
  const { items } = (await world.kernel.request('GET', '/api/inbox')).body
  assert.equal(
    items.map(({ session_id, kind, title, changes }: Reply) => [session_id, kind, title, changes]),
    [[id, 'edit', 'Edit a.js', ['a.js +1 -1']]],
  )
  const { interaction_id, answer, show } = items[0]
  assert.equal(
    [answer, show],
    [`svc session approve ${id} --request ${interaction_id}`, `svc session interactions ${id} ${interaction_id}`],
  )
  assert.is((await world.kernel.request('GET', '/api/status')).body.sessions.by_badge.waiting, 1)
  const question = await world.until(at, event => event.type === 'permission' && event.content.status === 'pending')
  assert.equal(question.content.diffs, [
    { path: 'a.js', added: 1, removed: 1, patch: '@@ -1,2 +1,2 @@\n one\n-two\n+2', hidden_lines: 0 },
  ])
  const turn = sent.body.prompt.new_turn_id
  const done = await world.until(at, event => event.type === 'done' && event.turn_id === turn)
  assert.equal([done.content.status, done.content.expired_requests], ['completed', 1])
  assert.equal((await world.kernel.request('GET', '/api/inbox')).body.items, [])
})

test('an agent known to never ask is named in its list and at its start', async () => {
  const program = path.join(world.root, 'pi-acp')
  await writeFile(program, `#!/bin/sh\nexec ${process.execPath} ${AGENT}\n`, { mode: 0o755 })
  await world.agent('silent', { permissions: 'deny-all', command: program })
  const { body } = await world.kernel.request('GET', `/api/agents?workspace=${world.workspaceId}`)
  const warned = body.agents.filter(({ diagnostics }: Reply) => diagnostics?.[0]?.error_kind === 'permissions_not_held')
  assert.equal(
    warned.map(({ name }: Reply) => name),
    ['silent'],
  )
  assert.match(
    warned[0].diagnostics[0].message,
    /^Pi never asks for permission: permissions=deny-all does not restrict its own tools/,
  )
  const { at } = await world.session('silent')
  const events = await world.prompt(at, 'say hello')
  const reports = events.filter(({ type }) => type === 'runtime_warning')
  assert.equal(
    reports.map(({ content }) => content.warning),
    ['permission_never_asked'],
  )
})

test('an agent that edits without asking is named once, where the mode requires a question', async () => {
  const done = (id: string) => update({ ...edit(id, 'a.js'), sessionUpdate: 'tool_call', status: 'completed' })
  const { at } = await world.session('plain')
  const events = await world.prompt(at, `${done('u1')}\n${done('u2')}`)
  const warnings = events.filter(({ type }) => type === 'runtime_warning')
  assert.is(warnings.length, 1)
  assert.is(warnings[0].content.warning, 'permission_not_asked')
  assert.match(warnings[0].content.text, /"Edit a.js" without asking/)
  const trusted = await world.session('trusted')
  const free = await world.prompt(trusted.at, done('u1'))
  assert.equal(
    free.filter(({ type }) => type === 'runtime_warning'),
    [],
  )
})

test.run()
