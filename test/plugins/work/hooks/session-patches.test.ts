// timeout: 120s
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { AGENT, agentText, eventually } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'
import { openScene, type Scene } from './scene.js'

let scene: Scene
const request: Scene['kernel']['request'] = (...args) => scene.kernel.request(...args)

test.before(async () => {
  scene = await openScene()
  await scene.agent('free')
  await scene.agent('asks', { permissions: 'approve-reads' })
})
test.after(() => scene.close())

const answers = (patch: object) => `#!/bin/sh\ncat >/dev/null\necho '${JSON.stringify(patch)}'\n`

/** Declares one sync hook that answers with a patch, for as long as the work runs. */
async function patching<T>(event: string, patch: object, work: () => Promise<T>, more: object = {}): Promise<T> {
  const command = await scene.program(`${event}.sh`, answers(patch))
  await scene.configure({ patch: { event, mode: 'sync', timeout: '60s', command, ...more } })
  try {
    return await work()
  } finally {
    await request('DELETE', '/api/settings/hooks/patch')
  }
}
const texts = (events: readonly Reply[]) => JSON.parse(agentText(events)) as string[]
const outcomes = async (id: string) => (await scene.runs(id)).map(({ outcome, error }: Reply) => [outcome, error ?? ''])

test('a hook adds context to a prompt, before the message and in the journal', async () => {
  const { at } = await scene.session('free')
  const given = { context_blocks: ['the build is red', 'the branch is main'] }
  const events = await patching('input.pre_submit', given, () => scene.prompt(at, 'texts'))
  assert.equal(texts(events).slice(-3), ['the build is red', 'the branch is main', 'texts'])
  const [message] = events.filter(({ type }) => type === 'user_message')
  assert.equal([message?.content.text, message?.content.context_blocks], ['texts', given.context_blocks])
  assert.equal(texts(await scene.prompt(at, 'texts')), ['texts'], 'the next prompt has none')
})

test('a queued prompt keeps the context of its hook', async () => {
  const { at } = await scene.session('free')
  const gate = scene.gate()
  await request('POST', `${at}/prompt`, { text: gate.line })
  await patching('input.pre_submit', { context_blocks: ['kept'] }, async () => {
    const { status } = await request('POST', `${at}/prompt`, { text: 'texts' })
    assert.is(status, 202)
  })
  await gate.open()
  const done = await scene.until(at, ({ type, content }) => type === 'agent_message' && /kept/.test(content.text ?? ''))
  assert.equal(JSON.parse(done.content.text), ['kept', 'texts'])
})

test('hooks see the edited text of a queued prompt, and refuse it', async () => {
  const { at } = await scene.session('free')
  const gate = scene.gate()
  await request('POST', `${at}/prompt`, { text: gate.line })
  const { body } = await request('POST', `${at}/prompt`, { text: 'say harmless' })
  const entry = body.prompt.queue_entry_id
  const to = { text: 'say harmful', message_id: 'm1', idempotency_key: 'k1' }
  const running = (await scene.events(at)).find(({ type }) => type === 'user_message')?.turn_id
  await patching('input.pre_submit', { deny: 'not this' }, async () => {
    const changed = await request('PUT', `${at}/prompt/queue/${entry}`, to)
    assert.equal([changed.status, changed.body.code], [403, 'hook_denied'])
    const steered = await request('POST', `${at}/prompt/queue/${entry}/steer`, { ...to, expected_turn_id: running })
    assert.equal([steered.status, steered.body.code], [403, 'hook_denied'])
  })
  const [waiting] = (await request('GET', `${at}/prompt/queue`)).body.inputs
  assert.is(waiting.text, 'say harmless')
  await patching('input.pre_submit', { message: 'say mended' }, async () => {
    const changed = await request('PUT', `${at}/prompt/queue/${entry}`, to)
    assert.equal([changed.status, changed.body.input?.text ?? changed.body.text], [200, 'say mended'])
  })
  await gate.open()
  await scene.until(at, ({ type, content }) => type === 'agent_message' && content.text === 'mended\n')
})

test('a hook adds context to the agent input, and sees additions of earlier hooks', async () => {
  const { at } = await scene.session('free')
  const events = await patching('prompt.post_assemble', { context_blocks: ['last words'] }, () =>
    scene.prompt(at, 'texts'),
  )
  assert.equal(texts(events).slice(-2), ['last words', 'texts'])
})

test('a hook moves a new session to an existing workspace by ID or reference, and to no other', async () => {
  const root = await realpath(await mkdtemp(path.join(os.tmpdir(), 'other-')))
  await mkdir(path.join(root, 'sub'))
  const other = (await request('POST', '/api/workspaces', { root_dir: root, name: 'elsewhere' })).body.workspace
  const head = `name: free\npermissions: approve-all\ncommand: '${process.execPath} ${AGENT}'`
  await mkdir(path.join(root, '.svc', 'agents', 'free'), { recursive: true })
  await writeFile(path.join(root, '.svc', 'agents', 'free', 'AGENT.md'), `---\n${head}\n---\nYou work.\n`)
  const placed = async (patch: object) => {
    const reply = await patching('session.pre_create', patch, () =>
      request('POST', '/api/sessions', { workspace: scene.workspaceId, agent_name: 'free' }),
    )
    return reply.status === 201 ? reply.body.session.workspace_id : [reply.status, reply.body.code]
  }
  assert.is(await placed({ workspace_id: other.id }), other.id)
  assert.is(await placed({ workspace: 'elsewhere' }), other.id)
  assert.is(await placed({ workspace: path.join(root, 'sub') }), other.id)
  assert.is(await placed({ workspace: 'elsewhere', workspace_id: other.id }), other.id)
  assert.equal(await placed({ workspace: 'nowhere' }), [403, 'hook_denied'])
  assert.equal(await placed({ workspace_id: 'ws_none' }), [403, 'hook_denied'])
  assert.equal(await placed({ workspace: root, workspace_id: 'ws_none' }), [403, 'hook_denied'])
  await rm(root, { recursive: true })
})

test('a hook renames a restarted session', async () => {
  const { id, at } = await scene.session('free', { name: 'before' })
  await scene.prompt(at, 'say here')
  await request('POST', `${at}/prompt`, { text: 'exit 3' })
  await eventually(async () => (await scene.row(id)).state === 'stopped', 'the crash')
  await patching('session.pre_resume', { session_name: 'after' }, () => scene.prompt(at, 'say again'))
  assert.equal([(await scene.row(id)).name, (await scene.row(id)).state], ['after', 'active'])
})

test('a hook refuses a requested stop; a crashed session stops regardless', async () => {
  const { id, at } = await scene.session('free')
  await scene.prompt(at, 'say here')
  await patching('session.pre_stop', { deny: 'the build runs' }, async () => {
    const stopped = await request('POST', `${at}/stop`)
    assert.equal([stopped.status, stopped.body.code], [403, 'hook_denied'])
    assert.match(stopped.body.error, /the build runs \(hook patch\)/)
    assert.is((await request('DELETE', at)).status, 403)
    assert.is((await scene.row(id)).state, 'active')
    await request('POST', `${at}/prompt`, { text: 'exit 3' })
    await eventually(async () => (await scene.row(id)).state === 'stopped', 'the crash')
  })
  const { id: second, at: other } = await scene.session('free')
  await patching('session.pre_stop', { deny: true }, () => request('POST', `${other}/stop`))
  assert.is((await request('POST', `${other}/stop`)).status, 204)
  assert.equal(await outcomes(second), [['denied', '']])
})

test('a hook raises the class of a permission, which is then judged by it, and cannot lower it', async () => {
  const options = ['allow_once', 'reject_once'].map(kind => ({ optionId: kind, kind, name: kind }))
  const ask = (kind: string) =>
    `ask ${JSON.stringify({ toolCall: { toolCallId: 'a', kind, title: 'look', locations: [{ path: 'x' }] }, options })}`
  const resolved = (events: readonly Reply[]) =>
    events.filter(({ type, content }) => type === 'permission' && content.status === 'resolved')[0]?.content.resolved_by
  const free = await scene.session('asks')
  assert.is(resolved(await scene.prompt(free.at, ask('read'))), 'mode')
  await patching('permission.request', { class: 'edit' }, async () => {
    const { at } = await scene.session('asks')
    await request('POST', `${at}/prompt`, { text: ask('read') })
    const question = await scene.until(at, ({ type, content }) => type === 'permission' && content.status === 'pending')
    await request('POST', `${at}/approve`, {
      ...{ request_id: question.content.request_id, turn_id: question.turn_id, decision: 'allow-once' },
    })
    await scene.until(at, ({ type, content }) => type === 'permission' && content.resolved_by === 'person')
  })
  await patching('permission.request', { class: 'read' }, async () => {
    const { id, at } = await scene.session('asks')
    await request('POST', `${at}/prompt`, { text: ask('edit') })
    await scene.until(at, ({ type, content }) => type === 'permission' && content.status === 'pending')
    assert.equal(await outcomes(id), [['rejected', 'a hook cannot lower the class from edit to "read"']])
  })
})

test('hooks get the actor of a prompt', async () => {
  const { id, at } = await scene.session('free')
  const command = await scene.program('other.sh', answers({}))
  const other = { event: 'turn.end', mode: 'sync', timeout: '60s', command, matcher: { input_class: 'automation' } }
  await scene.configure({ other })
  const eventsOf = async () => {
    await scene.prompt(at, 'say one')
    await scene.ran(id, ({ event }) => event === 'turn.end')
  }
  await patching('turn.end', {}, eventsOf, { matcher: { input_class: 'user' } })
  // Hooks run in the order of their names: this one would have run first.
  assert.equal(
    (await scene.runs(id)).map(({ hook_name }) => hook_name),
    ['patch'],
  )
  await request('DELETE', '/api/settings/hooks/other')
})

test.run()
