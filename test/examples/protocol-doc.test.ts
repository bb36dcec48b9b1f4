// timeout: 60s
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { checkReply, greeting, PROTOCOL_VERSIONS } from '../../plugins/delivery/subprocess-host/handshake.js'
import { SubscribeParams } from '../../plugins/delivery/subprocess-host/session-feed.js'
import { Delivered, IngestParams } from '../../plugins/reach/bridges/processes/schemas.js'
import { until } from '../plugins/delivery/subprocess-host/scene.js'
import { adapterFiles, FakeHost, managedInstance, scene } from '../plugins/reach/bridges/processes/scene.js'

const document = readFileSync(path.join(import.meta.dirname, '../../docs/protocol.md'), 'utf8')
const blocks = (language: string) =>
  [...document.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(([, text = '']) => text)
// biome-ignore lint/suspicious/noExplicitAny: examples of any shape
const examples: any[] = blocks('json').map(text => JSON.parse(text))
const [failure, initialize, answer, instance, delivery, results, event, subscription] = examples

test('the example messages match those that the daemon sends and accepts', () => {
  assert.is(failure.error.data.code, 'rate_limited')
  const { provides } = initialize.capabilities
  const extension = { ...initialize.extension, tier: 'user', manifest: { capabilities: { provides } } }
  const times = { initialize: 1, healthInterval: 1, healthTimeout: 1, hook: 1, shutdown: 1, signalGrace: 1 }
  const grants = { permissions: [], kinds: [], scopes: [], dropped: [] }
  const more = { data_dir: '', bridge: {} }
  const sent = greeting(extension, grants, times, { version: '', nonce: '' }, more)
  const keys = (value: object) => Object.keys(value).sort()
  assert.equal(keys(initialize), keys(sent))
  assert.equal(keys(initialize.runtime), keys(sent.runtime))
  assert.equal(initialize.methods, sent.methods)
  assert.equal(initialize.supported_protocol_versions, PROTOCOL_VERSIONS)
  checkReply(answer, { provides, permissions: initialize.capabilities.granted_permissions })
  assert.is(instance.bound_secrets.length, 1)
  assert.is(delivery.part, 0)
  for (const result of results) v.parse(Delivered, result)
  v.parse(IngestParams, event)
  v.parse(SubscribeParams, subscription)
})

test('the documented process starts its instance, hands over a message and delivers an answer', async () => {
  const [program = ''] = blocks('python')
  const svc = await scene()
  try {
    const files = await adapterFiles('chat')
    await svc.drop('chat', { ...files, 'adapter.py': program }, true)
    await svc.until('chat', () => svc.provider('chat') !== undefined)
    const provider = svc.provider('chat')
    const host = new FakeHost()
    await provider?.manage([managedInstance('b1')], host)
    await until(() => host.reports.length > 0)
    assert.equal(host.reports, [{ id: 'b1', state: { status: 'ready' } }])
    const { signal } = new AbortController()
    assert.equal(await provider?.targets('b1', signal), [{ peer_id: 'ada', display_name: 'Ada', target_type: 'user' }])
    await until(() => host.events.length > 0)
    assert.is(host.events[0]?.text, 'hello')
    assert.equal(await provider?.deliver({ ...delivery, bridge_instance_id: 'b1' }, signal), { status: 'delivered' })
    await provider?.manage([], host)
  } finally {
    await svc.close()
  }
})

test.run()
