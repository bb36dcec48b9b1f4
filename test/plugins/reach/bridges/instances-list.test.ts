import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { BridgeInstanceKind } from '../../../../plugins/reach/bridges/api.js'
import { FakePlatform } from './fake-platform.js'
import { instance, outcome, scene } from './scene.js'

const names = ({ body }: { body: { bridges: { display_name: string }[] } }) =>
  body.bridges.map(({ display_name }) => display_name)

test('bridges are listed global first, then by name, in pages bound to their query', async () => {
  const s = await scene([new FakePlatform(), new FakePlatform({ name: 'otherchat', platform: 'otherchat' })])
  const workspace = await s.workspace()
  const elsewhere = await s.workspace('elsewhere')
  const other = { platform: 'otherchat', extension_name: 'otherchat' }
  await s.create({ display_name: 'zulu', scope: 'workspace', workspace_id: workspace })
  await s.create({ display_name: 'Beta' })
  await s.create({ display_name: 'alpha', ...other })
  await s.create({ display_name: 'mike', scope: 'workspace', workspace_id: elsewhere, enabled: false })
  const last = await s.create({ display_name: 'gamma', enabled: false })
  const list = (query = '') => s.request('GET', `/api/bridges${query}`)
  const all = await list()
  assert.equal(names(all), ['alpha', 'Beta', 'gamma', 'mike', 'zulu'])
  assert.equal(all.body.page, { has_more: false, limit: 50, total: 5 })
  assert.equal(Object.keys(all.body.bridge_health).sort(), all.body.bridges.map(({ id }: { id: string }) => id).sort())
  assert.equal(all.body.facets.platforms, { fakechat: 4, otherchat: 1 })
  assert.is(all.body.facets.statuses.disabled, 2)

  assert.equal(names(await list('?scope=global')), ['alpha', 'Beta', 'gamma'])
  assert.equal(names(await list(`?workspace_id=${workspace}`)), ['alpha', 'Beta', 'gamma', 'zulu'])
  assert.equal(names(await list('?workspace=project&scope=workspace')), ['zulu'])
  assert.equal(names(await list('?q=MM')), ['gamma'])
  assert.equal(names(await list(`?q=${last.id}`)), ['gamma'])
  const disabled = await list('?status=disabled&platform=fakechat')
  assert.equal(names(disabled), ['gamma', 'mike'])
  // A facet counts what the other filters leave: what choosing another of its values would show.
  assert.equal(disabled.body.facets.platforms, { fakechat: 2 })
  assert.is(disabled.body.facets.statuses.disabled, 2)
  assert.ok(disabled.body.facets.statuses.ready + disabled.body.facets.statuses.starting === 2)

  const first = await list('?limit=2')
  assert.equal(names(first), ['alpha', 'Beta'])
  assert.equal([first.body.page.has_more, first.body.page.total], [true, 5])
  assert.equal(first.body.facets, all.body.facets, 'of all pages')
  const { next_cursor: cursor } = first.body.page
  assert.equal(names(await list(`?limit=2&cursor=${cursor}`)), ['gamma', 'mike'])
  assert.is(outcome(await list(`?limit=2&platform=fakechat&cursor=${cursor}`)), '400 invalid_cursor')
  assert.is(outcome(await list('?cursor=nonsense')), '400 invalid_cursor')
  assert.is((await list('?limit=1000')).body.page.limit, 200)
  assert.is(outcome(await list('?status=asleep')), '400 invalid_query')
  assert.is(outcome(await list('?workspace=nosuch')), '404 workspace_not_found')
  await s.end()
})

test('a PATCH changes its named members; delivery defaults are replaced whole and cleared by null', async () => {
  const platform = new FakePlatform()
  const s = await scene([platform])
  const { id } = await s.create({ delivery_defaults: { group_id: '#ops', topic: 'news' }, provider_config: { a: 1 } })
  await s.reaches(id, 'ready')
  const patch = (body: object) => s.request('PATCH', `/api/bridges/${id}`, body)
  const same = await patch({})
  assert.equal([same.status, same.body.bridge.display_name], [200, 'Team chat'])
  const { bridge } = (
    await patch({
      display_name: 'Ops',
      dm_policy: 'allowlist',
      notification_suppress: true,
      provider_config: { b: { c: 2 } },
    })
  ).body
  assert.equal([bridge.display_name, bridge.dm_policy, bridge.notification_suppress], ['Ops', 'allowlist', true])
  assert.equal([bridge.provider_config, bridge.delivery_defaults.topic], [{ b: { c: 2 } }, 'news'])
  await s.until('the adapter is told', () => platform.running[0]?.displayName === 'Ops')
  assert.equal((await patch({ delivery_defaults: { peer_id: 'ada' } })).body.bridge.delivery_defaults, {
    mode: 'direct-send',
    peer_id: 'ada',
  })
  assert.is((await patch({ delivery_defaults: null })).body.bridge.delivery_defaults, null)
  assert.is((await patch({ display_name: null, provider_config: null })).body.bridge.provider_config, null)
  assert.equal((await s.request('GET', `/api/bridges/${id}`)).body.bridge.display_name, 'Ops')
  const table: readonly (readonly [object, string])[] = [
    [{ enabled: false }, '400 invalid_request'],
    [{ status: 'error' }, '400 invalid_request'],
    [{ routing_policy: { include_thread: true } }, '400 bridge_invalid'],
    [{ delivery_defaults: { thread_id: 't' } }, '400 bridge_invalid'],
    [{ provider_config: { deep: [{ api_key: 'x' }] } }, '400 bridge_invalid'],
    [{ degradation: { reason: 'rate_limited' }, clear_degradation: true }, '400 bridge_invalid'],
  ]
  const before = (await s.request('GET', `/api/bridges/${id}`)).body.bridge
  for (const [body, expected] of table) assert.is(outcome(await patch(body)), expected, JSON.stringify(body))
  assert.equal((await s.request('GET', `/api/bridges/${id}`)).body.bridge, before)
  const degraded = (await patch({ degradation: { reason: 'rate_limited', message: 'maintenance' } })).body.bridge
  assert.equal([degraded.status, degraded.degradation.message], ['degraded', 'maintenance'])
  const cleared = (await patch({ clear_degradation: true })).body.bridge
  assert.equal([cleared.status, cleared.degradation], ['ready', null])
  await s.request('POST', `/api/bridges/${id}/disable`)
  assert.is(outcome(await patch({ degradation: { reason: 'rate_limited' } })), '409 bridge_transition')
  await s.end()
})

test('the spec of a packaged bridge is read-only; it is enabled and disabled, also after a rewrite by the package', async () => {
  const platform = new FakePlatform()
  const s = await scene([platform])
  const { db, records, actor } = s.inside()
  const write = (display_name: string) =>
    db.tx(t =>
      records.put(t, actor, {
        kind: BridgeInstanceKind,
        id: 'bri_package',
        scope: { kind: 'global' },
        owner: { kind: 'bundle.activation', id: 'act_1' },
        spec: { ...instance({ display_name, enabled: false, status: 'disabled' }), source: 'package' },
      }),
    )
  await write('From a package')
  const { bridge } = (await s.request('GET', '/api/bridges/bri_package')).body
  assert.equal([bridge.source, bridge.status, bridge.enabled], ['package', 'disabled', false])
  for (const body of [{ display_name: 'Mine' }, { delivery_defaults: null }, { provider_config: {} }])
    assert.is(outcome(await s.request('PATCH', '/api/bridges/bri_package', body)), '409 bridge_read_only')
  const on = (await s.request('POST', '/api/bridges/bri_package/enable')).body.bridge
  assert.equal([on.status, on.enabled], ['starting', true])
  await s.reaches('bri_package', 'ready')
  await write('Renamed')
  await s.until('the adapter is told', () => platform.running[0]?.displayName === 'Renamed')
  const after = (await s.request('GET', '/api/bridges/bri_package')).body.bridge
  assert.equal([after.status, after.enabled, after.display_name], ['ready', true, 'Renamed'])
  assert.is((await s.request('POST', '/api/bridges/bri_package/disable')).body.bridge.status, 'disabled')
  await s.until('the adapter ended it', () => platform.running.length === 0)
  await s.end()
})

test('a record from svc resource put starts like one from a request', async () => {
  const platform = new FakePlatform()
  const s = await scene([platform])
  const { status } = await s.request('PUT', '/api/resources/bridge.instance/team', {
    scope: { kind: 'global' },
    spec: instance(),
    expected_version: 0,
  })
  assert.is(status, 201)
  await s.reaches('team', 'ready')
  const { record } = (await s.request('GET', '/api/resources/bridge.instance/team')).body
  await s.request('PUT', '/api/resources/bridge.instance/team', {
    scope: { kind: 'global' },
    spec: { ...record.spec, enabled: false, status: 'disabled' },
    expected_version: record.version,
  })
  assert.is(await s.statusOf('team'), 'disabled')
  await s.until('the adapter ended it', () => platform.running.length === 0)
  await s.end()
})

test('status and doctor count bridges and name the next step of unready ones', async () => {
  const platform = new FakePlatform({ secretSlots: [{ name: 'bot_token', kind: 'token', required: true }] })
  const other = new FakePlatform({ name: 'otherchat', platform: 'otherchat' })
  const s = await scene([platform, other])
  const doctor = async () =>
    (await s.request('GET', '/api/doctor')).body.items.filter(
      ({ category }: { category: string }) => category === 'bridges',
    )
  assert.equal(await doctor(), [], 'without a bridge there is nothing to say')
  const lacking = await s.create()
  await s.reaches(lacking.id, 'auth_required')
  const fine = await s.create({ platform: 'otherchat', extension_name: 'otherchat' })
  await s.reaches(fine.id, 'ready')
  const [item, ...more] = await doctor()
  assert.equal(
    [item.code, item.suggested_command, more.length],
    ['bridge_auth_required', `svc bridge secret-bindings put ${lacking.id} bot_token`, 0],
  )
  await other.host.report(fine.id, { status: 'error', message: 'banned' })
  const codes = (await doctor()).map(({ code }: { code: string }) => code).sort()
  assert.equal(codes, ['bridge_auth_required', 'bridge_error'])
  const { bridges, health } = (await s.request('GET', '/api/status')).body
  assert.equal([bridges.total_instances, bridges.status_counts.auth_required, bridges.status_counts.error], [2, 1, 1])
  assert.equal(health.bridges.status_counts, bridges.status_counts)
  await s.request('POST', `/api/bridges/${lacking.id}/disable`)
  await s.request('POST', `/api/bridges/${fine.id}/restart`)
  await s.reaches(fine.id, 'ready')
  assert.equal(
    (await doctor()).map(({ code }: { code: string }) => code),
    ['bridge_ready'],
  )
  await other.host.report(fine.id, { status: 'degraded', message: 'slow' })
  Object.defineProperty(other.provider, 'secretSlots', {
    get: () => {
      throw new Error('the adapter is broken')
    },
  })
  const [broken, ...others] = await doctor()
  assert.equal(
    [broken.code, broken.message, broken.suggested_command, others.length],
    ['bridge_health_unavailable', 'the adapter is broken', 'svc bridge list', 0],
  )
  await s.end()
})

test.run()
