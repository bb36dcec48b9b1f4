import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { label, testCases } from '../../../fixtures/cases.js'
import type { Reply } from '../../../harness/kernel.js'
import { FakePlatform } from './fake-platform.js'
import { instance, outcome, scene } from './scene.js'

test('an instance is created, starts, becomes ready, is disabled and enabled again', async () => {
  const platform = new FakePlatform()
  const s = await scene([platform])
  const made = await s.create({
    ...{ provider_config: { server: 'irc.example' }, delivery_defaults: { group_id: '#ops' } },
    dm_policy: 'allowlist',
  })
  assert.match(made.id, /^bri_[0-9a-f]{16}$/)
  assert.equal([made.status, made.enabled, made.source, made.scope], ['starting', true, 'dynamic', 'global'])
  assert.equal(made.routing_policy, { include_group: false, include_peer: true, include_thread: false })
  await s.reaches(made.id, 'ready')
  assert.equal(
    platform.running.map(({ id, platform: on, providerConfig, dmPolicy }) => [id, on, providerConfig, dmPolicy]),
    [[made.id, 'fakechat', { server: 'irc.example' }, 'allowlist']],
  )
  await s.request('PATCH', `/api/bridges/${made.id}`, { dm_policy: 'pairing' })
  await s.until('the adapter knows', () => platform.running[0]?.dmPolicy === 'pairing')
  await s.reaches(made.id, 'ready')
  const off = await s.request('POST', `/api/bridges/${made.id}/disable`)
  assert.equal([off.status, off.body.bridge.status, off.body.bridge.enabled], [200, 'disabled', false])
  await s.until('the adapter ends it', () => platform.running.length === 0)
  const again = await s.request('POST', `/api/bridges/${made.id}/disable`)
  assert.equal(
    [again.status, again.body.bridge.updated_at],
    [200, off.body.bridge.updated_at],
    'the same state is no change',
  )
  const on = await s.request('POST', `/api/bridges/${made.id}/enable`)
  assert.equal([on.body.bridge.status, on.body.bridge.enabled], ['starting', true])
  await s.reaches(made.id, 'ready')
  assert.equal(
    (await s.events('bridge.ready')).map(({ bridge_id, status }) => [bridge_id, status]),
    [
      [made.id, 'ready'],
      [made.id, 'ready'],
    ],
  )
  await s.end()
})

const INVALID: readonly (readonly [Record<string, unknown>, string])[] = [
  [{ display_name: ' ' }, '400 bridge_invalid'],
  [{ status: 'ready' }, '400 invalid_request'],
  [{ platform: 'no such' }, '400 bridge_invalid'],
  [{ platform: 'nosuch' }, '404 bridge_provider_not_found'],
  [{ extension_name: 'other' }, '404 bridge_provider_not_found'],
  [{ routing_policy: { include_thread: true } }, '400 bridge_invalid'],
  [{ delivery_defaults: { thread_id: 't' } }, '400 bridge_invalid'],
  [{ delivery_defaults: { topic: 1 } }, '400 invalid_request'],
  [{ provider_config: { nested: { bot_token: 'abc' } } }, '400 bridge_invalid'],
  [{ scope: 'workspace' }, '400 bridge_invalid'],
  [{ scope: 'global', workspace_id: 'WORKSPACE' }, '400 bridge_invalid'],
  [{ scope: 'workspace', workspace_id: 'ws_00000000000000ff' }, '404 workspace_not_found'],
  [{ dm_policy: 'everyone' }, '400 invalid_request'],
]

testCases({
  open: async () => {
    const s = await scene()
    return { s, id: await s.workspace() }
  },
  close: ({ s }) => s.end(),
  cases: INVALID,
  name: ([more, expected]) => `a bridge is refused with ${expected}: ${label(more)}`,
  run: async ({ s, id }, [more, expected]) => {
    const body = instance(more.workspace_id === 'WORKSPACE' ? { ...more, workspace_id: id } : more)
    assert.is(outcome(await s.request('POST', '/api/bridges', body)), expected)
  },
  after: [
    'a refused bridge is not stored',
    async ({ s }) => {
      assert.is((await s.request('GET', '/api/bridges')).body.page.total, 0)
      assert.is(outcome(await s.request('GET', '/api/bridges/nosuch')), '404 bridge_not_found')
    },
  ],
})

test('provider_config is validated against its adapter schema, and a broken schema disables only that adapter', async () => {
  const configSchema = JSON.stringify({
    type: 'object',
    required: ['server'],
    additionalProperties: false,
    properties: {
      server: { $ref: '#/$defs/host' },
      port: { type: 'integer', minimum: 1 },
      rooms: { type: 'array', items: { type: 'string', pattern: '^#' } },
    },
    $defs: { host: { type: 'string', pattern: '^(?:[a-z]+)+$' } },
  })
  const strict = new FakePlatform({ name: 'strict', platform: 'strict', configSchema })
  const broken = new FakePlatform({ name: 'broken', platform: 'broken', configSchema: '{"type":"object"' })
  const s = await scene([new FakePlatform(), strict, broken])
  const of = (extension: string, provider_config?: object) =>
    instance({ extension_name: extension, platform: extension, ...(provider_config && { provider_config }) })
  const created = async (body: object) => {
    const reply = await s.request('POST', '/api/bridges', body)
    return reply.status === 201 ? (reply.body.bridge as { id: string }) : reply
  }
  const refused: readonly (readonly [object | undefined, string])[] = [
    [undefined, 'provider_config.server: required'],
    [{ server: 1 }, 'provider_config.server: string wanted'],
    [{ server: 'irc', port: 0 }, 'provider_config.port: at least 1'],
    [{ server: 'irc', rooms: ['#a', 'b'] }, 'provider_config.rooms.1: does not match its pattern'],
    [{ server: 'irc', prot: 1 }, 'provider_config.prot: no such member'],
    // A pattern that tries for ever does not hold up the daemon.
    [{ server: `${'a'.repeat(40)}!` }, 'provider_config: its patterns take too long'],
  ]
  for (const [config, text] of refused) {
    const { status, body } = await s.request('POST', '/api/bridges', of('strict', config))
    assert.equal([status, body.code, body.error], [400, 'bridge_config_invalid', text])
  }
  assert.is((await s.request('GET', '/api/bridges')).body.page.total, 0)
  const config = { server: 'irc', dm: { allow_user_ids: ['ada'] }, routing: { fallback: true } }
  const { id } = (await created(of('strict', config))) as { id: string }
  assert.ok(id, 'members of the daemon are not those of the adapter')
  const path = `/api/bridges/${id}`
  assert.is(
    outcome(await s.request('PATCH', path, { provider_config: { server: 'b', port: 'x' } })),
    '400 bridge_config_invalid',
  )
  assert.is(outcome(await s.request('PATCH', path, { provider_config: null })), '400 bridge_config_invalid')
  const { bridge } = (await s.request('PATCH', path, { display_name: 'New name' })).body
  assert.equal([bridge.display_name, bridge.provider_config], ['New name', config])
  const { status, body } = await s.request('POST', '/api/bridges', of('broken', {}))
  assert.equal([status, body.code], [503, 'bridge_schema_unusable'])
  assert.match(body.error, /extension broken cannot be used: it is not valid JSON/)
  assert.ok(((await created(of('fakechat'))) as { id?: string }).id)
  const { providers } = (await s.request('GET', '/api/bridges/providers')).body
  assert.equal(
    providers.map(({ platform, health }: Reply) => [platform, health]),
    [
      ['broken', 'degraded'],
      ['fakechat', 'ok'],
      ['strict', 'ok'],
    ],
  )
  await s.end()
})

test.run()
