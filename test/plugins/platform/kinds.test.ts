import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { canonicalJson } from '../../../kernel/kit/canonical.js'
import { definePlugin, type Kind, kind } from '../../../kernel/plugin.js'
import { emptyDocument } from '../../../plugins/desk/window-manager/document/document.js'
import { inTree } from '../../../plugins/index.js'
import { label } from '../../fixtures/cases.js'
import { boot } from '../../harness/kernel.js'

const svc = await boot({ plugins: inTree })
const kinds = inTree.flatMap(plugin => plugin.surface.kinds ?? []) as Kind[]

/** Largest spec of each kind, in bytes. */
const KiB = 1024
const limits: Readonly<Record<string, number>> = {
  'hook.binding': 256 * KiB,
  tool: 256 * KiB,
  mcp_server: 256 * KiB,
  'automation.job': 256 * KiB,
  'automation.trigger': 256 * KiB,
  'bridge.instance': 256 * KiB,
  agent: 512 * KiB,
  skill: 512 * KiB,
  'agent.soul': 512 * KiB,
  'agent.heartbeat': 512 * KiB,
  bundle: 512 * KiB,
  'bundle.activation': 64 * KiB,
  window_layout: 4096 * KiB,
}

/** A spec that each kind takes, in the way that people write it; `bundle.activation` is written by its owner alone. */
const written: Readonly<Record<string, readonly object[]>> = {
  'hook.binding': [
    { name: 'ready', event: 'session.post_create', command: '/bin/true', stray: 1 },
    {
      name: 'gate',
      event: 'tool.pre_call',
      required: true,
      matcher: { tool_name: 'git_*' },
      executor: { command: 'x', args: ['a'], timeout: '1m' },
    },
  ],
  tool: [
    {
      id: 'ext__demo__run',
      backend: { kind: 'extension_host', stray: 1 },
      input_schema: '{"type":"object"}',
      destructive: true,
    },
    { id: 'mcp__git__status', backend: { kind: 'mcp', mcp_server: 'git', mcp_tool: 'status' }, read_only: true },
  ],
  mcp_server: [
    { name: 'git', command: 'uvx', args: ['mcp-server-git'], secret_env: { TOKEN: 'vault:mcp/git' }, stray: {} },
    {
      name: 'web',
      url: 'https://example.org/mcp',
      auth: { registration: 'pre_registered', issuer_url: 'https://example.org', client_id: 'c' },
    },
  ],
  skill: [
    {
      name: 'brief',
      description: 'Write a brief',
      metadata: { svc: { when: { platforms: ['linux'] } }, more: [1] },
      stray: 1,
    },
  ],
  agent: [{ name: 'planner', prompt: 'Plan.', command: 'node plan.mjs', stray: 1 }],
  'automation.job': [
    { name: 'nightly', agent_name: 'general', prompt: 'Tidy.', schedule: { mode: 'every', interval: '24h' }, stray: 1 },
  ],
  'agent.soul': [
    { agent_id: 'agt_1', agent_name: 'planner', content: '# Planner\n\nCalm.\n', source_path: 'SOUL.md', stray: 1 },
  ],
  'agent.heartbeat': [
    { agent_id: 'agt_1', agent_name: 'planner', content: '---\nversion: 1\n---\nLook around.\n', stray: 1 },
  ],
  'automation.trigger': [
    { name: 'after', agent_name: 'general', prompt: 'Sum up.', event: 'session.stopped', stray: 1 },
    { name: 'on', agent_name: 'general', prompt: 'x', event: 'ext.demo.ready', filter: { 'data.kind': 'a' } },
  ],
  'bridge.instance': [
    {
      display_name: 'Chat',
      platform: 'slack',
      extension_name: 'demo',
      routing_policy: { include_peer: true },
      stray: 1,
    },
  ],
  bundle: [
    {
      extension_name: 'demo',
      bundle_name: 'kit',
      profiles: [{ name: 'default', content_hash: '00', stray: 1 }],
      stray: 1,
    },
  ],
  window_layout: [
    { version: 1, id: 'it', display_name: 'Empty', aspect: 'any', overflow: 'stack', document: emptyDocument('') },
  ],
}

const put = (kind: string, id: string, spec: unknown, expected_version = 0) =>
  svc.request('PUT', `/api/resources/${kind}/${id}`, { scope: { kind: 'global' }, spec, expected_version })

test('the built-in kinds have their size limits', () => {
  assert.equal(kinds.map(({ name }) => name).sort(), Object.keys(limits).sort())
  for (const { name, maxBytes } of kinds) assert.is(maxBytes, limits[name], name)
})

for (const [name, specs] of Object.entries(written))
  test(`${name}: a stored spec is canonical, and stays the same when stored again`, async () => {
    for (const [i, spec] of specs.entries()) {
      const id = name === 'window_layout' ? 'it' : `it${i}`
      const first = await put(name, id, spec)
      assert.is(first.status, 201, JSON.stringify(first.body))
      assert.not.ok(JSON.stringify(first.body.record.spec).includes('stray'), 'unknown members are dropped')
      const second = await put(name, id, first.body.record.spec, 1)
      assert.is(second.status, 200, JSON.stringify(second.body))
      assert.is(canonicalJson(second.body.record.spec), canonicalJson(first.body.record.spec))
    }
  })

/** What each kind refuses, and a part of what it says of it. */
const refused: readonly (readonly [string, object, string])[] = [
  ['hook.binding', { name: 'a', event: 'session.never', command: 'x' }, 'event'],
  ['hook.binding', { name: 'a', event: 'turn.start' }, 'command'],
  ['hook.binding', { name: 'a', event: 'turn.start', command: 'x', executor: { command: 'y' } }, 'not both'],
  ['hook.binding', { name: 'a', event: 'turn.start', command: 'x', executor_kind: 'wasm' }, 'not implemented'],
  ['hook.binding', { name: 'a', event: 'turn.start', executor_kind: 'native' }, 'daemon'],
  ['hook.binding', { name: 'a', event: 'message.delta', command: 'x', mode: 'sync' }, 'async'],
  ['hook.binding', { name: 'a', event: 'permission.denied', command: 'x', required: true }, 'async'],
  ['hook.binding', { name: 'a', event: 'turn.start', command: 'x', required: true, mode: 'async' }, 'sync'],
  ['hook.binding', { name: 'a', event: 'turn.start', command: 'x', matcher: { tool_name: 'x' } }, 'not a field'],
  ['hook.binding', { name: 'a', event: 'tool.pre_call', command: 'x', matcher: { tool_name: '[a' } }, 'pattern'],
  ['hook.binding', { name: 'a', event: 'tool.pre_call', command: 'x', matcher: { agent_type: 'x' } }, 'not a field'],
  ['hook.binding', { name: 'a', event: 'turn.start', command: 'x', timeout: 'soon' }, 'duration'],
  ['hook.binding', { name: 'a', event: 'turn.start', command: 'x', secret_env: { A: 'hunter2' } }, 'reference'],
  ['tool', { id: 'run', backend: { kind: 'native' } }, 'id'],
  ['tool', { id: 'ext__demo__run', backend: { kind: 'mcp' } }, 'backend.kind'],
  ['tool', { id: 'mcp__a__b', backend: { kind: 'mcp' } }, 'mcp_server'],
  ['tool', { id: 'service__x', backend: { kind: 'native' }, read_only: true, destructive: true }, 'destructive'],
  ['tool', { id: 'service__x', backend: { kind: 'native' }, input_schema: 'no' }, 'JSON'],
  ['mcp_server', { name: 'a' }, 'command'],
  ['mcp_server', { name: 'a', command: 'x', url: 'https://x' }, 'not both'],
  ['mcp_server', { name: 'a', url: 'ftp://x' }, 'http'],
  ['mcp_server', { name: 'a', url: 'https://u:p@x' }, 'password'],
  ['mcp_server', { name: 'a', command: 'x', auth: {} }, 'auth'],
  ['mcp_server', { name: 'a', command: 'x', secret_env: { A: 'hunter2' } }, 'reference'],
  ['mcp_server', { name: 'a', url: 'https://x', auth: { registration: 'pre_registered' } }, 'issuer_url'],
  ['skill', { name: '../a', description: 'x' }, 'name'],
  ['skill', { name: 'a' }, 'description'],
  ['skill', { name: 'a', description: 'x', metadata: { svc: { when: { platfroms: [] } } } }, 'platfroms'],
  [
    'window_layout',
    { version: 2, id: 'x', display_name: 'X', aspect: 'any', overflow: 'stack', document: emptyDocument('') },
    'layout.version',
  ],
  [
    'window_layout',
    { version: 1, id: 'y', display_name: 'X', aspect: 'any', overflow: 'stack', document: emptyDocument('') },
    'id',
  ],
  [
    'window_layout',
    { version: 1, id: 'x', display_name: 'X', aspect: 'any', overflow: 'stack', document: emptyDocument('ws_1') },
    'topology.workspace',
  ],
  [
    'window_layout',
    { version: 1, id: 'x', display_name: 'X', aspect: 'any', overflow: 'stack', stray: 1, document: emptyDocument('') },
    'stray',
  ],
]

for (const [kind, spec, part] of refused)
  test(`${kind}: a spec is 422 with "${part}": ${label(spec)}`, async () => {
    const { status, body } = await put(kind, 'x', spec)
    assert.is(status, 422)
    const text = JSON.stringify(body)
    assert.ok(text.includes(part), `${part} is not in ${text}`)
    assert.not.ok(text.includes('hunter2'), 'a possible secret is not repeated')
  })

test('a refused spec is not stored', async () => {
  assert.equal((await svc.request('GET', '/api/resources?kind=hook.binding')).body.records.length, 2)
})

test('an activation is readable for all and written only by its owner', async () => {
  const spec = { extension_name: 'demo', bundle_name: 'kit', profile_name: 'default' }
  assert.is((await put('bundle.activation', 'act_1', spec)).status, 403)
  assert.is((await svc.request('GET', '/api/resources/bundle.activation')).status, 200)
})

test('a spec above the limit of its kind is 413', async () => {
  const long = 'x'.repeat(300 * KiB)
  const hook = { name: 'a', event: 'turn.start', command: 'x', metadata: { long } }
  assert.is((await put('hook.binding', 'big', hook)).status, 413)
  assert.is((await put('mcp_server', 'big', { name: 'a', command: 'x', env: { long } })).status, 413)
})

const Idle = kind<{ readonly text: string }>({
  name: 'acme.idle',
  spec: v.object({ text: v.string() }),
  maxBytes: KiB,
})

test('status names kinds with stored records that nothing projects', async () => {
  const idle = definePlugin({ name: 'acme.idle', version: '1.0.0' }).surface({ kinds: [Idle] })
  const fresh = await boot({ plugins: [...inTree, idle] })
  const reconcile = async () => (await fresh.request('GET', '/api/status')).body.health.reconcile
  try {
    assert.equal((await reconcile()).unprojected, [], 'of a home without records')
    const body = { scope: { kind: 'global' }, spec: { text: 'x' } }
    assert.is((await fresh.request('PUT', '/api/resources/acme.idle/one', body)).status, 201)
    assert.equal((await reconcile()).unprojected, ['acme.idle'])
  } finally {
    await fresh.close()
  }
  const { unprojected, kinds: rows } = (await svc.request('GET', '/api/status')).body.health.reconcile
  assert.equal(unprojected, [], 'all kinds of the daemon')
  assert.equal(
    rows.filter((row: { registered: boolean }) => !row.registered),
    [],
  )
})

test.after(() => svc.close())
test.run()
