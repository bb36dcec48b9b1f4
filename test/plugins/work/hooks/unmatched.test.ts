import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { auth, extensions, identity, tools } from '../../../../plugins/index.js'
import { fieldsOf } from '../../../../plugins/work/hooks/families.js'
import { HookEvent } from '../../../../schemas/hooks.js'
import { HookMatcher } from '../../../../schemas/settings/hooks.js'
import type { Reply } from '../../../harness/kernel.js'
import { openScene, type Scene } from './scene.js'

let scene: Scene
const tool = { event: 'tool.post_call', command: 'true' }

test.before(async () => {
  const declared = {
    id: { ...tool, matcher: { tool_id: 'service__hooks_list', tool_namespace: 'service' } },
    server: { ...tool, matcher: { tool_namespace: 'mcp__githb' } },
  }
  scene = await openScene(declared, { plugins: [auth, identity, extensions, tools] })
  await scene.agent('reviewer')
})
test.after(() => scene.close())

/** The body of a reply of 200. */
function ok({ status, body }: { readonly status: number; readonly body: Reply }): Reply {
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
  return body
}
const hooks = async (): Promise<readonly Reply[]> => ok(await scene.kernel.request('GET', '/api/hooks/catalog')).hooks
const warnings = async () =>
  Object.fromEntries((await hooks()).flatMap(({ name, warnings }) => (warnings ? [[name, warnings]] : [])))

test('a matcher value that matches nothing known gets a warning in the list and in doctor, and the hook stays', async () => {
  const on = (event: string, matcher: object) => ({ event, matcher, command: 'true' })
  await scene.configure({
    agent: on('turn.start', { agent_name: 'revewer' }),
    known: on('turn.start', { agent_name: 'review*', workspace_id: scene.workspaceId, workspace_root: '*' }),
    place: on('turn.end', { workspace_id: 'ws_0000000000000000' }),
    tool: on('tool.pre_call', { tool_name: 'Bash|Edit' }),
    kinds: on('tool.pre_call', { tool_name: 'exec*' }),
    off: { ...on('turn.start', { agent_name: 'nobody' }), enabled: false },
  })
  const expected = {
    agent: ['matcher.agent_name: "revewer" matches no known agent, did you mean reviewer? List them: svc agent list'],
    place: ['matcher.workspace_id: "ws_0000000000000000" matches no known workspace. List them: svc workspace list'],
    tool: ['matcher.tool_name: "Bash|Edit" matches no known tool. List them: svc tool list'],
    server: ['matcher.tool_namespace: "mcp__githb" matches no known tool namespace. List them: svc tool list'],
  }
  assert.equal(await warnings(), expected)
  const doctor = await scene.kernel.request('GET', '/api/doctor?only=hooks')
  assert.equal(
    doctor.body.items.map(({ id, code, message }: Reply) => [id, code, message]).sort(),
    Object.entries(expected)
      .map(([name, [message]]) => [`hook:${name}`, 'hook_matcher_unmatched', message])
      .sort(),
  )
  await scene.agent('revewer')
  await scene.kernel.request('POST', '/api/settings/reload')
  assert.not('agent' in (await warnings()), 'an agent of that name exists by now')
})

test('every matchable field is a field of the API', () => {
  const declared = HookEvent.options.flatMap(event => fieldsOf(event))
  assert.equal(
    declared.filter(field => !(field in HookMatcher.entries)),
    [],
  )
})

test('a hook of an agent gets the unmatched warning too', async () => {
  await scene.agent('own', {
    lines: ['hooks:', '  - {name: mine, event: turn.start, command: "true", matcher: {agent_name: nobody}}'],
  })
  const { items } = (await scene.kernel.request('GET', '/api/doctor?only=hooks')).body
  assert.ok(
    items.some(({ id }: Reply) => id === 'hook:mine'),
    JSON.stringify(items),
  )
})

test.run()
