import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { FakePlatform } from './fake-platform.js'
import { outcome, scene } from './scene.js'

test('an instance is created, starts, gets ready, is disabled and enabled again', async () => {
  const platform = new FakePlatform()
  const s = await scene([platform])
  const made = await s.create({ provider_config: { server: 'irc.example' }, delivery_defaults: { group_id: '#ops' } })
  assert.match(made.id, /^bri_[0-9a-f]{16}$/)
  assert.equal([made.status, made.enabled, made.source, made.scope], ['starting', true, 'dynamic', 'global'])
  assert.equal(made.routing_policy, { include_group: false, include_peer: true, include_thread: false })
  await s.reaches(made.id, 'ready')
  assert.equal(
    platform.running.map(({ id, platform: on, providerConfig }) => [id, on, providerConfig]),
    [[made.id, 'fakechat', { server: 'irc.example' }]],
  )
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

test('bad input is refused and changes nothing', async () => {
  const s = await scene()
  const id = await s.workspace()
  const { instance } = await import('./scene.js')
  const table: readonly (readonly [Record<string, unknown>, string])[] = [
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
    [{ scope: 'global', workspace_id: id }, '400 bridge_invalid'],
    [{ scope: 'workspace', workspace_id: 'ws_00000000000000ff' }, '404 workspace_not_found'],
    [{ dm_policy: 'everyone' }, '400 invalid_request'],
  ]
  for (const [more, expected] of table)
    assert.is(outcome(await s.request('POST', '/api/bridges', instance(more))), expected, JSON.stringify(more))
  assert.is((await s.request('GET', '/api/bridges')).body.page.total, 0)
  assert.is(outcome(await s.request('GET', '/api/bridges/nosuch')), '404 bridge_not_found')
  await s.end()
})

test.run()
