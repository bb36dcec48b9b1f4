// timeout: 120s
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { HOSTILE, type McpScene, mcpScene } from './scene.js'

const test = suite<{ scene: McpScene }>('unavailable servers')
test.before(async context => {
  context.scene = await mcpScene()
})
test.after(({ scene }) => scene.close())

const call = (scene: McpScene, tool: string) =>
  scene.request('POST', `/api/tools/${tool}/invoke`, { input: { text: 'here' } })
const summaryOf = ({ status, body }: Awaited<ReturnType<typeof call>>) => [
  status,
  body.error?.code,
  ...(body.error?.reason_codes ?? []),
]

test('the first call of a tool waits for the start of its server', async ({ scene }) => {
  const gate = path.join(scene.home, 'gate')
  const script = `until [ -e ${gate} ]; do sleep 0.05; done; exec ${process.execPath} ${HOSTILE} plain`
  const { status } = await scene.put('slow', { command: 'sh', args: ['-c', script] })
  assert.is(status, 200)
  const called = call(scene, 'mcp__slow__good')
  const { body } = await scene.request('GET', '/api/tools')
  assert.not.ok(
    body.tools.some(({ descriptor }: { descriptor: { tool_id: string } }) => descriptor.tool_id === 'mcp__slow__good'),
    'no list has it yet',
  )
  await writeFile(gate, '')
  assert.is((await called).status, 200, JSON.stringify((await called).body))
  assert.equal(summaryOf(await call(scene, 'mcp__slow__nothing')), [404, 'tool_not_found', 'tool_unknown'])
})

test('a tool of an unreachable server is unavailable with the reason, and one of no server is unknown', async ({
  scene,
}) => {
  await scene.put('absent', { command: path.join(scene.home, 'no-such-program') })
  const refused = await call(scene, 'mcp__absent__echo')
  assert.equal(summaryOf(refused), [409, 'tool_unavailable', 'mcp_unreachable'])
  assert.match(refused.body.error.message, 'no-such-program')
  const shown = await scene.request('GET', '/api/tools/mcp__absent__echo')
  assert.equal(summaryOf(shown), [404, 'tool_not_found', 'mcp_unreachable'])
  assert.equal(summaryOf(await call(scene, 'mcp__nobody__echo')), [404, 'tool_not_found', 'tool_unknown'])
})

test('a secret of another consumer is refused in the declaration of a server, hook or provider', async ({ scene }) => {
  const foreign = await scene.put('thief', { command: 'true', secret_env: { X: 'vault:hooks/a/b' } })
  assert.equal([foreign.status, foreign.body.code], [400, 'mcp_server_invalid'])
  assert.match(foreign.body.error, /vault:hooks\/a\/b.*vault:mcp\//)
  const declaration = { name: 'thief', event: 'session.post_create', command: 'true', matcher: {} }
  for (const ref of ['vault:mcp/a/b', 'vault:extensions/a/b']) {
    const body = { declaration: { ...declaration, secret_env: { X: ref } } }
    const hook = await scene.request('PUT', '/api/settings/hooks/thief', body)
    assert.is(hook.status, 400, JSON.stringify(hook.body))
  }
  const slot = { name: 'key', target_env: 'KEY', secret_ref: 'vault:mcp/a/b', kind: 'api_key', required: false }
  const settings = { command: 'x', credential_slots: [slot] }
  const provider = await scene.request('PUT', '/api/settings/providers/thief', { settings })
  assert.is(provider.status, 400, JSON.stringify(provider.body))
  assert.match(provider.body.error, /vault:providers\//)
  const own = { declaration: { ...declaration, secret_env: { X: 'vault:hooks/a/b', Y: 'env:Y' } } }
  assert.is((await scene.request('PUT', '/api/settings/hooks/thief', own)).status, 200)
})

test('a hook without a matcher applies to every event of its name; a search gives at least one tool', async ({
  scene,
}) => {
  const declaration = { name: 'all', event: 'session.post_create', command: 'true' }
  const put = await scene.request('PUT', '/api/settings/hooks/all', { declaration })
  assert.is(put.status, 200, JSON.stringify(put.body))
  for (const limit of [0, -1])
    assert.is((await scene.request('POST', '/api/tools/search', { query: 'list', limit })).status, 400, `${limit}`)
  const both = await scene.request('POST', '/api/skills/marketplace/update', { name: 'x', all: true })
  assert.equal([both.status, both.body.error], [400, 'name, all: give one of them, not both'])
})

test.run()
