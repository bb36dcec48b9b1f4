// timeout: 120s
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { auth, extensions, identity, tools } from '../../../../plugins/index.js'
import type { Reply } from '../../../harness/kernel.js'
import { openScene, type Scene } from './scene.js'

let scene: Scene
const request: Scene['kernel']['request'] = (...args) => scene.kernel.request(...args)
const LIST = 'service__hooks_list'
const EVENTS = 'service__hooks_events'

test.before(async () => {
  scene = await openScene({}, { plugins: [auth, identity, extensions, tools] })
  await scene.agent('free')
})
test.after(() => scene.close())

const answers = (patch: object) => `#!/bin/sh\ncat >/dev/null\necho '${JSON.stringify(patch)}'\n`

let count = 0

/** Calls a tool while hooks answer with patches; the reply and how the runs of the hooks ended. */
async function called(id: string, hooks: readonly { event: string; patch: object; tool?: string }[], input = {}) {
  const names = hooks.map(() => `patch${++count}`)
  for (const [n, { event, patch, tool = id }] of hooks.entries())
    await scene.configure({
      [names[n]!]: {
        ...{ event, mode: 'sync', timeout: '60s', matcher: { tool_id: tool } },
        command: await scene.program(`${names[n]}.sh`, answers(patch)),
      },
    })
  const { status, body } = await request('POST', `/api/tools/${id}/invoke`, { input })
  const outcomes = await Promise.all(names.map(name => scene.ran('none', ({ hook_name }) => hook_name === name)))
  for (const name of names) await request('DELETE', `/api/settings/hooks/${name}`)
  return { status, body, outcomes: outcomes.map(run => run?.outcome), errors: outcomes.map(run => run?.error) }
}

test('a hook replaces the called tool, whose name is used for rules and other hooks', async () => {
  const event = 'tool.pre_call'
  for (const patch of [{ name: 'hooks_events' }, { name: EVENTS }, { namespace: 'service', name: 'hooks_events' }]) {
    const { status, body } = await called(LIST, [{ event, patch }])
    assert.equal([status, body.tool_id], [200, EVENTS], JSON.stringify(body))
    assert.ok(JSON.stringify(body.result).includes('patch_members'))
  }
  const guarded = await called(LIST, [
    { event, patch: { name: 'hooks_events' } },
    { event, patch: { deny: 'never' }, tool: EVENTS },
  ])
  assert.equal([guarded.status, guarded.body.error.reason_codes], [403, ['hook_denied']])
  const back = await called(LIST, [
    { event, patch: { name: 'hooks_events' } },
    { event, patch: { name: 'hooks_list' }, tool: EVENTS },
  ])
  assert.equal(back.status, 403)
  assert.match(back.body.error.message, /redirected this call twice/)
  const unknown = await called(LIST, [{ event, patch: { namespace: 'mcp__nowhere' } }])
  assert.equal([unknown.status, unknown.body.error.code], [404, 'tool_not_found'])
})

test('a hook declares a tool as writing, never as reading', async () => {
  const event = 'tool.pre_call'
  const raised = await called(LIST, [{ event, patch: { read_only: false } }])
  assert.equal([raised.status, raised.outcomes, raised.body.events[0].read_only], [200, ['applied'], true])
  const { tools: all } = (await request('GET', '/api/tools')).body
  const writes = all.find(({ descriptor }: Reply) => descriptor.risk === 'mutating').descriptor.tool_id
  const lowered = await called(writes, [{ event, patch: { read_only: true } }])
  assert.equal(lowered.outcomes, ['rejected'])
  assert.match(lowered.errors[0], /cannot declare a tool read-only/)
})

test('a hook changes the title and the result of a call, or fails it', async () => {
  const event = 'tool.post_call'
  const plain = await called(LIST, [{ event, patch: { title: 'Hooks of this place', result: 'nothing to see' } }])
  assert.equal(plain.body.result.content, [{ type: 'text', text: 'nothing to see' }], JSON.stringify(plain))
  assert.is(plain.body.result.structured, undefined)
  assert.is(plain.body.events.at(-1).display_title, 'Hooks of this place')
  const content = [{ type: 'text', text: 'two' }]
  const shaped = await called(LIST, [{ event, patch: { result: { content, structured: { n: 2 } } } }])
  assert.equal([shaped.body.result.content, shaped.body.result.structured], [content, { n: 2 }])
  const data = await called(LIST, [{ event, patch: { result: { n: 3 } } }])
  assert.equal(data.body.result.structured, { n: 3 })
  const failed = await called(LIST, [{ event, patch: { error: 'this may not be known' } }])
  assert.equal([failed.body.status, failed.body.result.is_error], ['failed', true])
  assert.equal(failed.body.result.content, [{ type: 'text', text: 'this may not be known' }])
  const wrong = await called(LIST, [{ event, patch: { result: 7 } }])
  assert.equal([wrong.status, wrong.outcomes], [200, ['rejected']])
})

test('a hook changes the error text of a call', async () => {
  const id = 'service__session_info'
  const given = { workspace_id: scene.workspaceId, session_id: 'ses_none' }
  const before = await called(id, [], given)
  assert.ok(before.status >= 400, JSON.stringify(before.body))
  const worded = await called(id, [{ event: 'tool.post_error', patch: { error: 'ask Ann about it' } }], given)
  assert.equal([worded.status, worded.body.error.code], [before.status, before.body.error.code])
  assert.is(worded.body.error.message, 'ask Ann about it')
})

test('internal tools of an agent cannot be changed by a hook, and the run gives the reason', async () => {
  const command = await scene.program('late.sh', answers({ result: 'other' }))
  await scene.configure({ late: { event: 'tool.post_call', mode: 'sync', timeout: '60s', command } })
  const { id, at } = await scene.session('free')
  const call = { sessionUpdate: 'tool_call', toolCallId: 'a', title: 'well', kind: 'read', status: 'completed' }
  await scene.prompt(at, `update ${JSON.stringify(call)}`)
  const run = await scene.ran(id, ({ hook_name }) => hook_name === 'late')
  assert.equal(
    [run.outcome, run.error],
    ['rejected', 'a patch cannot set result here: the agent has already run this tool itself'],
  )
  await request('DELETE', '/api/settings/hooks/late')
})

test.run()
