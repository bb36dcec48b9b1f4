import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { definePlugin, type Setting, Settings, surfaceOf } from '../../../../kernel/plugin.js'
import { scene } from './scene.js'

const CONFIG = `{
  // providers of mine
  "providers": {
    // the first
    "one": { "command": "cat -u" }, // keeps
    "claude": { "display_name": "Mine" }
  }
}
`

const brief = ({ status, body }: { status: number; body: Record<string, unknown> }) => [
  status,
  body.lifecycle ?? body.code,
  body.next_action,
]

test('entries are merged by name with their source, and comments of other entries stay', async () => {
  const daemon = await scene(CONFIG)
  try {
    const { providers } = (await daemon.request('GET', '/api/settings/providers')).body
    const byName = new Map(providers.map((one: { name: string }) => [one.name, one]))
    const { source_metadata: mine, settings } = byName.get('claude') as Record<string, Record<string, unknown>>
    assert.equal(mine?.effective_source, { kind: 'global-config', scope: 'global' })
    assert.equal(mine?.shadowed_sources, [{ kind: 'builtin-provider', scope: 'global' }])
    assert.equal([settings?.display_name, settings?.command], ['Mine', 'claude-agent-acp'])
    assert.is((byName.get('one') as { command_available: boolean }).command_available, true)

    const put = (name: string, settings: unknown) =>
      daemon.request('PUT', `/api/settings/providers/${name}`, { settings })
    assert.equal(brief(await put('two', { command: 'cat' })), [200, 'live-add', 'none'])
    assert.equal(brief(await put('two', { command: 'cat -n' })), [200, 'session-rebind', 'new-session'])
    const models = { default: 'small' }
    assert.equal(brief(await put('two', { command: 'cat -n', models })), [200, 'live', 'none'])
    assert.is((await put('two', { command: 'cat -n', models })).body.skipped, true)
    assert.is((await daemon.request('GET', '/api/providers/two')).body.command, 'cat -n')
    const remove = () => daemon.request('DELETE', '/api/settings/providers/two')
    assert.equal(brief(await remove()), [200, 'live-remove-if-unused', 'none'])
    assert.equal(brief(await remove()), [404, 'setting_entry_not_found', undefined])
    assert.is((await daemon.request('GET', '/api/settings/providers/two')).status, 404)
    assert.is(await daemon.text(), CONFIG)
  } finally {
    await daemon.close()
  }
})

test('a name that no object may have is refused, and nothing is written', async () => {
  const daemon = await scene(CONFIG)
  try {
    const bodies = {
      providers: { settings: { command: 'cat' } },
      hooks: { declaration: { name: 'constructor', event: 'session.post_create', matcher: {}, command: 'true' } },
      'mcp-servers': { server: { transport: 'stdio', command: 'true' } },
      sandboxes: { profile: { backend: 'local' } },
    }
    for (const [kind, body] of Object.entries(bodies)) {
      const { status, body: reply } = await daemon.request('PUT', `/api/settings/${kind}/constructor`, body)
      assert.ok(status === 400 || status === 422, `${kind}: ${status} ${JSON.stringify(reply)}`)
    }
    const change = { key: 'hooks.constructor', value: { event: 'session.post_create', command: 'true' } }
    const patched = await daemon.request('PATCH', '/api/settings/keys', { changes: [change] })
    assert.is(patched.body.code, 'setting_invalid', JSON.stringify(patched.body))
    assert.match(patched.body.error, /hooks\.constructor: is reserved: use another name/)
    assert.is(await daemon.text(), CONFIG)
  } finally {
    await daemon.close()
  }
})

test('an entry in use is not removed, and no entry contains a secret', async () => {
  const daemon = await scene(CONFIG)
  try {
    const agent = { name: 'mine', provider: 'one', prompt: 'Do.' }
    assert.is((await daemon.request('POST', '/api/agents', { scope: 'global', agent })).status, 201)
    const removed = await daemon.request('DELETE', '/api/settings/providers/one')
    assert.equal([removed.status, removed.body.code], [409, 'setting_in_use'])
    assert.match(removed.body.error, /"mine"/)
    const slot = { name: 'key', required: true, secret_ref: 'sk-live-secret', target_env: 'KEY' }
    const body = { settings: { command: 'cat', credential_slots: [slot] } }
    const refused = await daemon.request('PUT', '/api/settings/providers/two', body)
    assert.equal([refused.status, refused.body.code], [400, 'setting_invalid'])
    assert.not.match(JSON.stringify(refused.body), /sk-live-secret/)
    const profile = { backend: 'local', secret_env: { TOKEN: 'env:TOKEN' } }
    assert.equal(brief(await daemon.request('PUT', '/api/settings/sandboxes/tight', { profile })), [
      200,
      'session-rebind',
      'new-session',
    ])
    const { sandbox } = (await daemon.request('GET', '/api/settings/sandboxes/tight')).body
    assert.equal([sandbox.profile, sandbox.workspace_usage_count], [profile, 0])
  } finally {
    await daemon.close()
  }
})

test('secrets of a provider go into the vault, are never shown, and are restored if its entry cannot be written', async () => {
  const daemon = await scene(CONFIG)
  const value = 'a-secret-that-nobody-prints'
  const slot = {
    name: 'key',
    kind: 'api_key',
    required: true,
    secret_ref: 'vault:providers/two/key',
    target_env: 'KEY',
  }
  const settings = { command: 'cat', credential_slots: [slot] }
  const put = (secrets: unknown, more: object = settings) =>
    daemon.request('PUT', '/api/settings/providers/two', { settings: more, secrets })
  const secret = (text: string, secret_ref = slot.secret_ref) => ({
    name: 'key',
    kind: 'api_key',
    secret_ref,
    value: text,
  })
  const stored = async () => {
    const { secrets } = (await daemon.request('GET', '/api/vault/secrets')).body
    return secrets.map(({ ref, kind, version }: Record<string, unknown>) => [ref, kind, version])
  }
  const present = async () =>
    (await daemon.request('GET', '/api/settings/providers/two')).body.provider.credentials.map(
      ({ present }: { present: boolean }) => present,
    )
  try {
    assert.equal(brief(await put([])), [200, 'live-add', 'none'])
    assert.equal(await present(), [false])
    const first = await put([secret(value)])
    assert.equal([...brief(first), first.body.skipped], [200, 'session-rebind', 'new-session', false])
    assert.equal(await present(), [true])
    assert.equal(await stored(), [[slot.secret_ref, 'api_key', 1]])

    // The second secret, or the entry, is refused: the first one is as it was.
    for (const [secrets, body, code] of [
      [[secret('another-secret-of-two'), secret('short', 'vault:providers/two/other')], settings, 'vault_value_short'],
      [[secret('another-secret-of-two', 'vault:providers/one/key')], settings, 'provider_secret_foreign'],
      [[secret('another-secret-of-two')], { credential_slots: [{ ...slot, target_env: '=' }] }, 'setting_invalid'],
    ] as const) {
      const { status, body: refused } = await put(secrets, body)
      assert.equal([status, refused.code], [400, code])
      assert.not.match(JSON.stringify(refused), /another-secret/)
    }
    assert.equal((await stored()).length, 1)
    const provider = (await daemon.request('GET', '/api/providers/two')).body
    assert.is(provider.command, 'cat')
    const all = ['/api/settings/providers', '/api/settings/apply', '/api/audit', '/api/settings/providers/two']
    for (const url of all) assert.not.match(JSON.stringify((await daemon.request('GET', url)).body), value, url)
    assert.not.match(await daemon.text(), value)
  } finally {
    await daemon.close()
  }
})

test('keys are written only to the six settings files', async () => {
  const daemon = await scene()
  try {
    const { id, root } = await daemon.workspace()
    for (const scope of ['global', 'workspace'] as const) {
      const agent = { name: `of-${scope}`, prompt: 'Do.', command: 'cat' }
      const body = { scope, agent, ...(scope === 'workspace' && { workspace: id }) }
      assert.is((await daemon.request('POST', '/api/agents', body)).status, 201)
    }
    const server = { command: 'uvx', args: ['mcp-server-git'] }
    const write = (target: string, key: string, value: unknown, more = {}) =>
      daemon.request('PATCH', '/api/settings/keys', { target, changes: [{ key, value }], ...more })
    const targets = [
      ['global-config', 'log.level', 'debug', {}, path.join(daemon.home, 'config.json'), /"debug"/],
      [
        'workspace-config',
        'cmd_palette.personalization',
        false,
        { workspace_id: id },
        `${root}/.svc/config.json`,
        /false/,
      ],
      ['global-mcp-sidecar', 'mcp_servers.git', server, {}, path.join(daemon.home, 'mcp.json'), /uvx/],
      ['workspace-mcp-sidecar', 'mcp_servers.git', server, { workspace_id: id }, `${root}/.svc/mcp.json`, /uvx/],
      [
        'global-agent-file',
        'permissions.mode',
        'deny-all',
        { agent_name: 'of-global' },
        path.join(daemon.home, 'agents/of-global/AGENT.md'),
        /permissions: deny-all/,
      ],
      [
        'workspace-agent-file',
        'permissions.mode',
        'deny-all',
        { agent_name: 'of-workspace', workspace_id: id },
        `${root}/.svc/agents/of-workspace/AGENT.md`,
        /permissions: deny-all/,
      ],
    ] as const
    for (const [target, key, value, more, file, expected] of targets) {
      const { status, body } = await write(target, key, value, more)
      assert.is(status, 200, `${target}: ${JSON.stringify(body)}`)
      assert.equal([body.write_target, body.skipped], [target, false])
      assert.match(await readFile(file, 'utf8'), expected)
      assert.is((await write(target, key, value, more)).body.skipped, true, target)
    }
    const reply = (await daemon.request('GET', '/api/audit?action=settings.written')).body.entries
    assert.equal(
      reply.map(({ subject, origin, request }: Record<string, string>) => [subject, origin, request]),
      [id, 'global-agent-file', id, 'global-mcp-sidecar', id].map(one => [one, 'uds', 'PATCH /api/settings/keys']),
    )
    const { state } = (await daemon.request('GET', `/api/workspaces/${id}/trust`)).body.trust
    assert.is(state, 'trusted')
    for (const [target, key, value, more, code] of [
      ['workspace-config', 'permissions.mode', 'approve-all', { workspace_id: id }, 'setting_not_overlaid'],
      ['workspace-config', 'cmd_palette.personalization', true, {}, 'settings_target_invalid'],
      ['global-config', 'log.level', 'debug', { workspace_id: id }, 'settings_target_invalid'],
      ['global-mcp-sidecar', 'log.level', 'debug', {}, 'settings_target_invalid'],
      ['global-mcp-sidecar', 'mcp_servers.bad', { args: [] }, {}, 'settings_target_invalid'],
      ['global-agent-file', 'http.port', 1, { agent_name: 'of-global' }, 'settings_target_invalid'],
      ['global-agent-file', 'permissions.mode', 'deny-all', { agent_name: 'nobody' }, 'settings_target_invalid'],
    ] as const) {
      const { status, body } = await write(target, key, value, more)
      assert.equal([status, body.code], [400, code], `${target} ${key}`)
    }
  } finally {
    await daemon.close()
  }
})

test('a change of config.json is recorded with its actor, and one by an editor without', async () => {
  const daemon = await scene('{}')
  try {
    await daemon.request('PATCH', '/api/settings/attention', { config: { sound: false } })
    await daemon.save('{ "attention": { "sound": true } }')
    await daemon.request('POST', '/api/settings/reload')
    const { entries } = (await daemon.request('GET', '/api/audit?action=config.changed&limit=2')).body
    assert.equal(
      entries.map(({ actor, origin, request }: Record<string, unknown>) => [actor, origin, request]),
      [
        [{ kind: 'daemon', id: 'configuration' }, 'file', undefined],
        [{ kind: 'human', id: 'operator' }, 'uds', 'PATCH /api/settings/attention'],
      ],
    )
  } finally {
    await daemon.close()
  }
})

test('a save by an editor is a separate change, reload returns its result, and a broken file stops nothing', async () => {
  const daemon = await scene('{ "attention": { "sound": false } }')
  try {
    await daemon.save('{ "attention": { "sound": true } }')
    await daemon.request('POST', '/api/settings/reload')
    const [entry] = (await daemon.request('GET', '/api/settings/apply')).body.entries
    assert.equal([entry.keys, entry.status, entry.lifecycle], [['attention.sound'], 'applied', 'live'])
    assert.is((await daemon.request('POST', '/api/settings/reload')).body.skipped_reason, 'no_changes_detected')
    await daemon.save('{ "attention": { "sound": 7 } }')
    const reloaded = await daemon.request('POST', '/api/settings/reload')
    assert.equal([reloaded.status, reloaded.body.code], [400, 'config_reload_invalid'])
    assert.match(reloaded.body.error, /config\.json:1: attention\.sound/)
    const refused = await daemon.request('PATCH', '/api/settings/attention', { config: { toasts: false } })
    assert.equal([refused.status, refused.body.code], [409, 'config_file_invalid'])
    assert.is(await daemon.text(), '{ "attention": { "sound": 7 } }')
    const { body } = await daemon.request('GET', '/api/settings/check')
    assert.is(body.valid, false)
    assert.is((await daemon.request('GET', '/api/settings/attention')).body.config.sound, true)
  } finally {
    await daemon.close()
  }
})

test('a plugin that fails to apply a live value is named, and the record is failed', async () => {
  const size: Setting<number> = {
    path: 'sizes.size',
    section: 'general',
    schema: v.number(),
    default: 1,
    apply: 'live',
  }
  const { tap } = surfaceOf<object>()
  const fragile = definePlugin({
    name: 'fragile',
    version: '1.0.0',
    requires: { settings: Settings },
    service: async () => class {},
  }).surface({
    settings: [size],
    taps: [
      tap(
        Settings,
        settings => settings.of(size),
        () => () => {
          throw new Error('no room')
        },
      ),
    ],
  })
  const daemon = await scene('', { plugins: [fragile] })
  try {
    const set = (value: number) =>
      daemon.request('PATCH', '/api/settings/keys', { changes: [{ key: size.path, value }] })
    for (const value of [2, 3]) {
      const { body } = await set(value)
      assert.equal([body.applied, body.next_action], [false, 'retry'])
      assert.equal(
        body.partial_failures.map((one: { subsystem: string }) => one.subsystem),
        ['fragile'],
      )
      const [entry] = (await daemon.request('GET', '/api/settings/apply?status=failed')).body.entries
      assert.is(entry.id, body.apply_record_id)
      assert.match(entry.diagnostics[0].message, /no room/)
    }
    const others = await daemon.request('GET', '/api/settings/apply?actor=nobody')
    assert.equal(others.body.entries, [])
  } finally {
    await daemon.close()
  }
})

test.run()
