import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { FakePlatform } from './fake-platform.js'
import { instance, outcome, scene } from './scene.js'

const rooms = [
  { group_id: 'C1', display_name: '#Ops', target_type: 'channel', qualifier: 'north', capabilities: ['threads'] },
  { group_id: 'C2', display_name: 'ops', target_type: 'channel', qualifier: 'south' },
  { peer_id: 'U1', display_name: 'Ada Lovelace', target_type: 'user' },
  { group_id: 'C3', thread_id: 't1', display_name: 'Release', target_type: 'thread' },
]

const ready = async (platform: FakePlatform, more: Record<string, unknown> = {}) => {
  const s = await scene([platform])
  const { id } = await s.create(more)
  await s.reaches(id, 'ready')
  await s.until('the directory is read', () => s.inside().db.row('SELECT 1 FROM bridges_state WHERE refreshed_at > 0'))
  return { s, id }
}

test('targets are read when a bridge is ready and every five minutes, and stay when the platform drops them', async () => {
  const platform = new FakePlatform({ targets: rooms })
  const { s, id } = await ready(platform)
  const list = async (query = '') => (await s.request('GET', `/api/bridges/${id}/targets${query}`)).body
  const all = await list()
  assert.equal(
    all.targets.map(({ canonical_route, normalized }: Record<string, string>) => [canonical_route, normalized]),
    [
      ['peer:U1', 'ada lovelace'],
      ['group:C1', 'ops'],
      ['group:C2', 'ops'],
      ['group:C3/thread:t1', 'release'],
    ],
  )
  assert.equal([all.total, all.cache_stale, all.targets[1].capabilities], [4, false, ['threads']])
  assert.equal((await list('?q=OPS')).total, 2)
  assert.equal((await list('?q=u1')).targets.length, 1)
  assert.equal((await list('?limit=1')).targets.length, 1)
  platform.targets = [{ peer_id: 'U1', display_name: 'Ada Byron', target_type: 'user' }]
  await s.clock.advance(5 * 60_000)
  await s.until(
    'the directory is read again',
    async () => (await s.host.request('GET', `/api/bridges/${id}/targets?q=byron`)).body.total === 1,
  )
  assert.is((await list()).total, 4, 'what is not named again stays')
  await s.request('POST', `/api/bridges/${id}/disable`)
  await s.clock.advance(7 * 3600_000)
  assert.is((await list()).cache_stale, true)
  assert.is(outcome(await s.request('GET', '/api/bridges/nosuch/targets')), '404 bridge_not_found')
  await s.end()
})

test('the list of targets has at most fifty rows', async () => {
  const many = Array.from({ length: 60 }, (_, n) => ({
    group_id: `C${n}`,
    display_name: `room ${n}`,
    target_type: 'channel',
  }))
  const { s, id } = await ready(new FakePlatform({ targets: many }))
  const { body } = await s.request('GET', `/api/bridges/${id}/targets?limit=1000`)
  assert.equal([body.targets.length, body.total], [50, 60])
  await s.end()
})

test('a name is resolved by route, id, whole name, then a part of it', async () => {
  const { s, id } = await ready(new FakePlatform({ targets: rooms }))
  const resolve = (name: string) => s.request('POST', `/api/bridges/${id}/resolve`, { name })
  const found = async (name: string) => {
    const { status, body } = await resolve(name)
    return [status, body.result.match?.canonical_route, body.result.step]
  }
  assert.equal(await found('group:C1'), [200, 'group:C1', 1])
  assert.equal(await found('C2'), [200, 'group:C2', 2])
  assert.equal(await found('@ada lovelace'), [200, 'peer:U1', 3])
  assert.equal(await found('ops south'), [200, 'group:C2', 3])
  assert.equal(await found('lovelace'), [200, 'peer:U1', 4])
  const several = await resolve('#OPS')
  assert.equal(
    [several.status, several.body.code, several.body.result.ambiguous],
    [422, 'bridge_target_ambiguous', true],
  )
  assert.equal(
    several.body.result.candidates.map(({ qualifier }: { qualifier: string }) => qualifier),
    ['north', 'south'],
  )
  assert.is(several.body.diagnostic.suggested_command, `svc bridge targets ${id}`)
  const none = await resolve('nobody')
  assert.equal([none.status, none.body.diagnostic.code, none.body.result.match], [404, 'bridge_target_unknown', null])
  assert.match((await resolve('group:C99')).body.diagnostic.message, /messages can still be sent to it/)
  assert.is(outcome(await s.request('POST', '/api/bridges/nosuch/resolve', { name: 'x' })), '404 bridge_not_found')
  assert.is(outcome(await s.request('POST', `/api/bridges/${id}/resolve`, {})), '400 invalid_request')
  await s.end()
})

test('a dry-run delivery shows the destination and sends nothing', async () => {
  const platform = new FakePlatform()
  const { s, id } = await ready(platform, { delivery_defaults: { group_id: '#ops', mode: 'reply' } })
  const dry = (body: object) => s.request('POST', `/api/bridges/${id}/test-delivery`, body)
  assert.equal((await dry({ target: {}, message: 'hi' })).body, {
    delivery_target: { bridge_instance_id: id, group_id: '#ops', mode: 'reply' },
    message: 'hi',
    status: 'deliverable',
  })
  const named = await dry({ target: { peer_id: 'ada', thread_id: 't', mode: 'direct-send' } })
  assert.equal(named.body.delivery_target, {
    bridge_instance_id: id,
    peer_id: 'ada',
    thread_id: 't',
    mode: 'direct-send',
  })
  assert.is(outcome(await dry({ target: { thread_id: 't' } })), '400 bridge_target_invalid')
  assert.is(
    outcome(await dry({ target: { bridge_instance_id: 'other', peer_id: 'ada' } })),
    '400 bridge_target_invalid',
  )
  await s.request('PATCH', `/api/bridges/${id}`, { delivery_defaults: null })
  assert.is(outcome(await dry({ target: {} })), '400 bridge_target_invalid')
  assert.is(platform.messages.length, 0)
  await s.request('POST', `/api/bridges/${id}/disable`)
  assert.is(outcome(await dry({ target: { peer_id: 'ada' } })), '409 bridge_not_ready')
  await s.end()
})

test('a test message is sent and awaited; each failure names the next step', async () => {
  const platform = new FakePlatform({ capabilities: { canSettle: false } })
  const { s, id } = await ready(platform)
  const send = () =>
    s.request('POST', `/api/bridges/${id}/send-test`, { message: 'hello', target: { group_id: '#ops' } })
  const sent = await send()
  assert.equal(
    [sent.status, sent.body.status, sent.body.remote_message_id],
    [200, 'delivered', platform.messages[0]?.id],
  )
  assert.equal(platform.room({ group_id: '#ops' }), ['hello'])
  assert.is((await s.request('GET', `/api/bridges/${id}`)).body.health.last_success_at !== null, true)
  platform.failNext({ permanent: true, kind: 'unknown_destination', message: 'no such room' })
  const failed = await send()
  assert.is(outcome(failed), '409 bridge_send_failed')
  assert.match(failed.body.error, /no such room/)
  platform.unknownNext({ arrives: true })
  const unknown = await send()
  assert.equal([unknown.status, unknown.body.status], [200, 'committed_result_unavailable'])
  await s.request('POST', `/api/bridges/${id}/disable`)
  assert.is(outcome(await send()), '409 bridge_not_ready')
  await s.end()
})

test('verify has five checks, and each failed one names the next step', async () => {
  const schema = JSON.stringify({ type: 'object', required: ['server'], properties: { server: { type: 'string' } } })
  const platform = new FakePlatform({
    secretSlots: [{ name: 'password', kind: 'secret', required: true }],
    configSchema: schema,
  })
  const s = await scene([platform])
  // As one who wrote the record before the adapter had a schema.
  const id = 'older'
  const { body: put } = await s.request('PUT', `/api/resources/bridge.instance/${id}`, {
    scope: { kind: 'global' },
    expected_version: 0,
    spec: instance({ enabled: false, dm_policy: 'allowlist' }),
  })
  assert.is(put.record?.id, id, JSON.stringify(put))
  const verify = async () => {
    const { body } = await s.request('POST', `/api/bridges/${id}/verify`)
    const checks = body.checks as { check: string; status: string; remediation: string }[]
    for (const { check, status, remediation } of checks)
      if (status === 'fail') assert.match(remediation, /svc bridge|svc extension/, check)
    return Object.fromEntries(checks.map(({ check, status }) => [check, status]))
  }
  const five = ['configuration', 'process', 'transport', 'inbound', 'outbound']
  assert.equal(await verify(), Object.fromEntries(five.map(check => [check, 'fail'])))
  await s.request('PUT', `/api/bridges/${id}/secret-bindings/password`, {
    kind: 'secret',
    secret_ref: `vault:bridges/${id}/password`,
    secret_value: 'correct-horse',
  })
  assert.is((await verify()).configuration, 'fail', 'the server is not configured')
  const { checks: first } = (await s.request('POST', `/api/bridges/${id}/verify`)).body
  assert.match(first[0].remediation, /^provider_config\.server: required/)
  await s.request('PATCH', `/api/bridges/${id}`, { provider_config: { server: 'irc.example' } })
  assert.is((await verify()).configuration, 'warn', 'nobody may write')
  await s.request('PATCH', `/api/bridges/${id}`, {
    provider_config: { server: 'irc.example', dm: { allow_user_ids: ['ada'] } },
  })
  assert.equal([(await verify()).configuration, (await verify()).process], ['pass', 'fail'])
  await s.request('POST', `/api/bridges/${id}/enable`)
  await s.reaches(id, 'ready')
  await s.until(
    'the adapter has started',
    async () => (await s.host.request('POST', `/api/bridges/${id}/verify`)).body.checks[1].status === 'pass',
  )
  platform.checks = [{ check: 'scopes', status: 'warn', remediation: 'add the scope files:read' }]
  assert.equal(await verify(), {
    configuration: 'pass',
    process: 'pass',
    transport: 'pass',
    inbound: 'fail',
    outbound: 'fail',
    scopes: 'warn',
  })
  await s.request('POST', `/api/bridges/${id}/send-test`, { message: 'hello', target: { peer_id: 'ada' } })
  await s.until(
    'outbound is proven',
    async () => (await s.host.request('POST', `/api/bridges/${id}/verify`)).body.checks[4].status === 'pass',
  )
  await platform.host.report(id, { status: 'degraded', reason: 'provider_timeout', message: 'no answer' })
  assert.is((await verify()).transport, 'warn')
  assert.equal((await s.request('POST', `/api/bridges/${id}/webhook/register`)).body, {
    bridge_instance_id: id,
    status: 'pass',
    remediation: '',
  })
  await s.end()
})

test('a platform without message ids proves only that a message was handed over', async () => {
  const { s, id } = await ready(
    new FakePlatform({ withoutIds: true, capabilities: { edits: false, canSettle: false } }),
  )
  const outbound = async () => (await s.request('POST', `/api/bridges/${id}/verify`)).body.checks[4]
  assert.is((await outbound()).status, 'fail')
  await s.request('POST', `/api/bridges/${id}/send-test`, { message: 'hello', target: { peer_id: 'ada' } })
  assert.equal([(await outbound()).check, (await outbound()).status], ['outbound', 'warn'])
  await s.end()
})

test('the manifest of a Slack app is created from its bridge, and for no other platform', async () => {
  const slack = new FakePlatform({ name: 'slack-kit', platform: 'slack' })
  const s = await scene([new FakePlatform(), slack])
  const { id } = await s.create({
    platform: 'slack',
    extension_name: 'slack-kit',
    display_name: 'Build bot of the team in the north',
  })
  const other = await s.create()
  const url = (platform: string, instance = id) => `/api/bridges/providers/${platform}/manifest?instance=${instance}`
  const { manifest } = (await s.request('GET', url('chatprovider'))).body
  assert.equal(manifest.settings.socket_mode_enabled, true)
  assert.match(manifest.display_information.name, /^Build bot/)
  assert.ok(manifest.display_information.name.length <= 35)
  assert.equal([manifest.settings.interactivity.request_url, manifest.features.slash_commands[0].url], ['', ''])
  // Slack refuses a manifest with addresses that are empty.
  const app = (await s.request('GET', url('slack'))).body.manifest
  assert.equal(app.display_information, manifest.display_information)
  assert.not.match(JSON.stringify(app), /"(?:request_)?url"/)
  assert.is(app.features.app_home.messages_tab_enabled, true)
  await s.until('it runs', () => slack.managed.length > 0)
  await slack.host.report(id, { status: 'ready', webhook_public_url: 'https://svc.example/slack' })
  const { settings } = (await s.request('GET', url('slack'))).body.manifest
  assert.equal(
    [settings.socket_mode_enabled, settings.event_subscriptions.request_url],
    [false, 'https://svc.example/slack'],
  )
  assert.is(outcome(await s.request('GET', url('fakechat', other.id))), '404 bridge_manifest_not_found')
  assert.is(outcome(await s.request('GET', url('slack', other.id))), '400 bridge_invalid')
  assert.is(outcome(await s.request('GET', url('slack', 'nosuch'))), '404 bridge_not_found')
  assert.is(outcome(await s.request('GET', '/api/bridges/providers/slack/manifest')), '400 invalid_query')
  const { providers } = (await s.request('GET', '/api/bridges/providers')).body
  assert.equal(
    providers.map(({ platform, extension_name }: Record<string, string>) => [platform, extension_name]),
    [
      ['fakechat', 'fakechat'],
      ['slack', 'slack-kit'],
    ],
  )
  await s.end()
})

test.run()
