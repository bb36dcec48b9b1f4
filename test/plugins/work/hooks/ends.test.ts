import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, surfaceOf } from '../../../../kernel/plugin.js'
import { type HookPayload, type NativeHook, NativeHooks } from '../../../../plugins/work/hooks/api.js'
import { eventually } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'
import { openScene, type Scene } from './scene.js'

const messages: [string, HookPayload][] = []
const hook = (
  name: string,
  event: NativeHook['event'],
  matcher: NonNullable<NativeHook['matcher']> = {},
): NativeHook => ({ name, event, matcher, run: payload => void messages.push([name, payload]) })
const listener = definePlugin({ name: 'test.ends', version: '1.0.0' }).surface({
  registries: [
    surfaceOf().contribute(NativeHooks, () => [
      hook('resolved execute', 'permission.resolved', { tool_name: 'execute' }),
      hook('resolved by class', 'permission.resolved', { decision_class: 'execute' }),
      hook('resolved edit', 'permission.resolved', { tool_name: 'edit' }),
      hook('denied execute', 'permission.denied', { tool_name: 'execute' }),
      hook('before', 'tool.pre_call'),
      hook('after', 'tool.post_call'),
      hook('failed', 'tool.post_error'),
    ]),
  ],
})

let scene: Scene
test.before(async () => {
  scene = await openScene({}, { plugins: [listener] })
})
test.before.each(() => {
  messages.length = 0
})
test.after(() => scene.close())

const wait = (count: number) =>
  eventually(async () => messages.length >= count, `${count} hooks, not ${messages.length}`)
const names = () => messages.map(([name]) => name).sort()

const question = (kind: string) => {
  const options = ['allow', 'reject'].map(way => ({ optionId: way, name: way, kind: `${way}_once` }))
  return `ask ${JSON.stringify({ toolCall: { toolCallId: 'c1', title: 'rm x', kind, rawInput: { command: 'rm x' } }, options })}`
}

test('a hook on a permission answer is matched by tool and class, whoever answers', async () => {
  await scene.agent('careful', { permissions: 'approve-reads' })
  for (const [decision, expected] of [
    ['reject-once', ['denied execute', 'resolved by class', 'resolved execute']],
    ['allow-once', ['resolved by class', 'resolved execute']],
  ] as const) {
    messages.length = 0
    const { at } = await scene.session('careful')
    const prompted = await scene.kernel.request('POST', `${at}/prompt`, { text: question('execute') })
    assert.is(prompted.status, 200, JSON.stringify(prompted.body))
    const asked = await scene.until(at, ({ type, content }) => type === 'permission' && content.status === 'pending')
    const { content, turn_id } = asked
    const answer = { request_id: content.request_id, turn_id, decision }
    assert.is((await scene.kernel.request('POST', `${at}/approve`, answer)).status, 200)
    await wait(expected.length)
    await scene.kernel.request('POST', `${at}/stop`)
    assert.equal(names(), expected)
    assert.equal(
      messages.map(([, { decision_class: by, tool_name: tool }]) => [by, tool]),
      expected.map(() => ['execute', 'execute']),
    )
  }
})

test('a hook on permission requests is called in deny-all too, and cannot reverse the refusal', async () => {
  const answer = await scene.program('allows', '#!/bin/sh\ncat >/dev/null\necho \'{"decision":"allow"}\'\n')
  await scene.configure({ allows: { event: 'permission.request', command: answer, mode: 'sync' } })
  await scene.agent('denied', { permissions: 'deny-all' })
  const { id, at } = await scene.session('denied')
  await scene.prompt(at, question('execute'))
  const run = await scene.ran(id, ({ hook_name }) => hook_name === 'allows')
  assert.is(run.outcome, 'rejected')
  assert.match(run.error, 'a hook cannot change a decision from deny to allow')
  const { events } = (await scene.kernel.request('GET', `${at}/events?limit=100`)).body
  const answered = events.filter(({ type, content }: Reply) => type === 'permission' && content.status === 'resolved')
  assert.equal(
    answered.map(({ content }: Reply) => [content.decision, content.resolved_by]),
    [['reject-once', 'mode']],
  )
  await scene.kernel.request('DELETE', '/api/settings/hooks/allows')
})

test('each file access and command served by the daemon ends as succeeded, failed or not permitted', async () => {
  await scene.agent('free')
  await scene.agent('held', { permissions: 'deny-all' })
  const file = path.join(scene.root, 'notes.txt')
  await writeFile(file, 'words')
  const lines = [
    `call fs/read_text_file ${JSON.stringify({ path: file })}`,
    `call fs/read_text_file ${JSON.stringify({ path: path.join(scene.root, 'missing.txt') })}`,
    `call fs/write_text_file ${JSON.stringify({ path: path.join(scene.root, 'new.txt'), content: 'x' })}`,
    `call terminal/create ${JSON.stringify({ command: 'true' })}`,
    `call terminal/create ${JSON.stringify({ command: 'false' })}`,
  ]
  const { id, at } = await scene.session('free')
  await scene.prompt(at, lines.join('\n'))
  await wait(10)
  const told = (wanted: string) =>
    messages
      .filter(([name]) => name === wanted)
      .map(([, { tool_name, content }]) => {
        const { title, raw_input: input, error } = (content ?? {}) as HookPayload
        return [tool_name, path.basename(String(title)), error === undefined || String(error).length > 0, input]
      })
      .sort((a, b) => String(a).localeCompare(String(b)))
  assert.equal(
    told('after').map(([tool, title]) => [tool, title]),
    [
      ['edit', 'new.txt'],
      ['execute', 'true'],
      ['read', 'notes.txt'],
    ],
  )
  assert.equal(
    told('failed').map(([tool, title]) => [tool, title]),
    [
      ['execute', 'false'],
      ['read', 'missing.txt'],
    ],
  )
  assert.equal(messages.filter(([name]) => name === 'before').length, 5)
  assert.ok(messages.every(([, payload]) => payload.session_id === id))

  messages.length = 0
  const held = await scene.session('held')
  await scene.prompt(held.at, lines[0] ?? '')
  await wait(2)
  assert.equal(names(), ['before', 'failed'])
})

test.run()
