import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, type Setting, surfaceOf } from '../../../../kernel/plugin.js'
import { StatusMembers } from '../../../../plugins/desk/daemon/api.js'
import { sections } from '../../../../plugins/desk/settings/sections/sections.js'
import { Values } from '../../../../plugins/platform/configuration/in-effect.js'
import { textOf } from '../../../../plugins/platform/configuration/in-force.js'
import { FileSource } from '../../../../plugins/platform/configuration/source.js'
import { Relaunchers } from '../../../../plugins/platform/restart/api.js'
import { scene } from './scene.js'

const config = `{
  // who may talk
  "log": { "level": "warn" }, // less
  "attention": { "sound": false }
}
`

test('every section is shown whole, and its own value is accepted as no change', async () => {
  const daemon = await scene(config)
  try {
    for (const { name, flat, members } of sections) {
      const got = await daemon.request('GET', `/api/settings/${name}`)
      assert.is(got.status, 200, `${name}: ${JSON.stringify(got.body)}`)
      assert.is(got.body.section, name)
      const own = flat ? Object.fromEntries(Object.keys(members).map(key => [key, got.body[key]])) : got.body.config
      const patched = await daemon.request('PATCH', `/api/settings/${name}`, flat ? own : { config: own })
      assert.is(patched.status, 200, `${name}: ${JSON.stringify(patched.body)}`)
      if (!flat) {
        assert.is(patched.body.skipped, true, name)
        assert.is(patched.body.skipped_reason, 'no_changes_detected')
      }
    }
    assert.is(await daemon.text(), config)
    assert.equal((await daemon.request('GET', '/api/settings/apply')).body.entries, [])
  } finally {
    await daemon.close()
  }
})

test('a live member takes effect at once, is recorded, and the file keeps its comments', async () => {
  const daemon = await scene(config)
  try {
    const { body } = await daemon.request('PATCH', '/api/settings/attention', { config: { toasts: false } })
    assert.equal(
      [body.applied, body.lifecycle, body.next_action, body.restart_required, body.write_target, body.section],
      [true, 'live', 'none', false, 'global-config', 'attention'],
    )
    assert.is((await daemon.request('GET', '/api/settings/attention')).body.config.toasts, false)
    assert.is(await daemon.text(), config.replace('"sound": false }', '"sound": false, "toasts": false }'))
    const [entry] = (await daemon.request('GET', '/api/settings/apply')).body.entries
    assert.equal([entry.id, entry.status, entry.keys], [body.apply_record_id, 'applied', ['attention.toasts']])
    assert.is(entry.generation, body.active_generation)
    assert.is(entry.active_config_hash, entry.desired_config_hash)
  } finally {
    await daemon.close()
  }
})

test('a change decodes the file once, and its section reads one member of the status', async () => {
  const { contribute } = surfaceOf<unknown>()
  let looks = 0
  const read = () => ({ looks: ++looks })
  const probe = definePlugin({ name: 'probe', version: '1.0.0' }).surface({
    registries: [contribute(StatusMembers, () => [{ path: 'probe', read }])],
  })
  const daemon = await scene('', { plugins: [probe] })
  const decode = FileSource.prototype.read
  let decoded = 0
  FileSource.prototype.read = function (known) {
    decoded++
    return decode.call(this, known)
  }
  const { get } = Values.prototype
  let reads = 0
  Values.prototype.get = function <T>(entry: Setting<T>): T {
    if (entry.path === 'attention.sound') reads++
    return get.call(this, entry as Setting) as T
  }
  try {
    const { body } = await daemon.request('PATCH', '/api/settings/automation', { config: { max_concurrent_jobs: 7 } })
    assert.equal([body.skipped, decoded], [false, 1])
    assert.ok(reads <= 6, `the hashes of a change read another setting ${reads} times`)
    const shown = (await daemon.request('GET', '/api/settings/automation')).body
    assert.equal([shown.config.max_concurrent_jobs, shown.runtime.running, looks], [7, true, 0])
    const skills = (await daemon.request('GET', '/api/settings/skills')).body
    assert.equal([skills.runtime_available, looks], [true, 0])
    const status = (await daemon.request('GET', '/api/status')).body
    assert.equal([status.probe.looks, status.automation.enabled, status.skills.status], [1, true, 'ok'])
    assert.equal(skills.discovered_count, status.skills.discovered_count)
  } finally {
    FileSource.prototype.read = decode
    Values.prototype.get = get
    await daemon.close()
  }
})

test('the canonical JSON of a decoded value is made once', () => {
  let reads = 0
  const value = {
    get limit() {
      return ++reads > 0 ? 1 : 0
    },
  }
  assert.equal([textOf(value), textOf(undefined), textOf('a')], ['{"limit":1}', undefined, '"a"'])
  const before = reads
  assert.equal([textOf(value), reads], ['{"limit":1}', before])
})

test('the strictest member decides: a change that needs a restart is pending until the next start', async () => {
  const daemon = await scene(config)
  const before = (await daemon.request('GET', '/api/settings/general')).body.config
  const changed = { daemon: { reload_timeouts: { mcp: '20s' } }, limits: { max_concurrent_agents: 3 } }
  const { body } = await daemon.request('PATCH', '/api/settings/general', { config: changed })
  assert.equal(
    [body.applied, body.lifecycle, body.next_action, body.restart_required, body.restart_scope],
    [false, 'restart-required', 'restart-daemon', true, 'daemon'],
  )
  const blocked = (await daemon.request('GET', '/api/settings/apply?status=blocked')).body.entries
  assert.equal(
    blocked.map(({ id }: { id: string }) => id),
    [body.apply_record_id],
  )
  assert.is.not(blocked[0].active_config_hash, blocked[0].desired_config_hash)
  const key = (await daemon.request('GET', '/api/settings/keys/limits.max_concurrent_agents')).body
  assert.equal([key.value, key.pending, key.source], [before.limits.max_concurrent_agents, 3, 'file'])
  await daemon.close()

  const next = await scene('', { home: daemon.home })
  try {
    const [entry] = (await next.request('GET', '/api/settings/apply')).body.entries
    assert.equal([entry.id, entry.status, entry.next_action], [body.apply_record_id, 'applied', 'none'])
    assert.ok(entry.generation > body.active_generation, 'what is in force is another generation')
    assert.is((await next.request('GET', '/api/settings/general')).body.config.limits.max_concurrent_agents, 3)
  } finally {
    await next.close()
  }
})

test('an invalid member is refused by name, and nothing is written or recorded', async () => {
  const daemon = await scene(config)
  try {
    for (const [section, body] of [
      ['general', { config: { http: { port: 70_000 } } }],
      ['general', { config: { htpp: {} } }],
      ['memory', { config: { dream: { check_interval: 'soon' } } }],
      ['shell', { config: { sessions: { sort: 'colour' } } }],
    ] as const) {
      const { status, body: reply } = await daemon.request('PATCH', `/api/settings/${section}`, body)
      assert.is(status, 400, JSON.stringify(reply))
    }
    assert.is(await daemon.text(), config)
    assert.equal((await daemon.request('GET', '/api/settings/apply')).body.entries, [])
  } finally {
    await daemon.close()
  }
})

test('the general section has the socket of the daemon, and a request changes only its default agent', async () => {
  const daemon = await scene(config)
  try {
    const { config: general } = (await daemon.request('GET', '/api/settings/general')).body
    assert.is(general.daemon.socket, path.join(daemon.home, 'daemon.sock'))
    const same = await daemon.request('PATCH', '/api/settings/general', { config: general })
    assert.is(same.status, 200, JSON.stringify(same.body))
    assert.is(await daemon.text(), config, 'what GET gave is no change')
    const refused = await daemon.request('PATCH', '/api/settings/general', {
      config: { defaults: { provider: 'claude' } },
    })
    assert.equal([refused.status, refused.body.code], [400, 'settings_target_invalid'])
    assert.is(refused.body.details.next, 'svc config set defaults.provider <value>')
    assert.is(await daemon.text(), config)
  } finally {
    await daemon.close()
  }
})

test('the catalog of the marketplace is a folder, or an address of http or https', async () => {
  const daemon = await scene(config)
  try {
    const patch = (base_url: string) =>
      daemon.request('PATCH', '/api/settings/hooks-extensions', { config: { marketplace: { base_url } } })
    const set = (value: string) =>
      daemon.request('PATCH', '/api/settings/keys', { changes: [{ key: 'marketplace.catalog.base_url', value }] })
    for (const url of ['ftp://example.org/x/', 'https://a:b@example.org/', 'gopher:x'])
      for (const write of [patch, set]) {
        const { status, body } = await write(url)
        assert.is(status, 400, `${url} ${JSON.stringify(body)}`)
        assert.match(JSON.stringify(body), 'a folder, or an address of http or https without a password')
      }
    for (const where of ['https://example.org/x/', '/srv/catalog', ''])
      for (const write of [patch, set]) assert.is((await write(where)).status, 200, where)
  } finally {
    await daemon.close()
  }
})

test('a restart is offered only by a daemon that supports it', async () => {
  const relauncher = { prepare: async () => ({ pid: 1, release() {} }), ready: Promise.resolve(), stop() {} }
  const { contribute } = surfaceOf<unknown>()
  const program = (refusal?: string) =>
    definePlugin({ name: 'program', version: '1' }).surface({
      registries: [contribute(Relaunchers, () => [{ ...relauncher, ...(refusal && { refusal }) }])],
    })
  for (const [plugins, available] of [
    [[], false],
    [[program('it has no file to start from')], false],
    [[program()], true],
  ] as const) {
    const daemon = await scene('', { plugins })
    const { actions } = (await daemon.request('GET', '/api/settings/general')).body
    assert.is(actions.restart.available, available)
    await daemon.close()
  }
})

test.run()
