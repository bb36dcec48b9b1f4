// timeout: 120s
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { BridgeProvider, DeliveryRequest, DeliveryResult } from '../../../../../plugins/reach/bridges/api.js'
import { BridgeErrors } from '../../../../../plugins/reach/bridges/api.js'
import { until } from '../../../delivery/subprocess-host/scene.js'
import { FakeHost, managedInstance, type Scene, scene } from './scene.js'

let svc: Scene
test.before(async () => {
  svc = await scene()
})
test.after(() => svc.close())

const { signal } = new AbortController()
const request = (id: string, text: string): DeliveryRequest => ({
  bridge_instance_id: id,
  delivery_id: 'd1',
  part: 0,
  event: 'final',
  target: { peer_id: 'u1' },
  text,
  nonce: 'n1',
})

/** What the process answers to what it is told. */
// biome-ignore lint/suspicious/noExplicitAny: answers of any shape
async function told(provider: BridgeProvider, id: string, text: string): Promise<any> {
  const result = (await provider.deliver(request(id, text), signal)) as Extract<DeliveryResult, { status: 'unknown' }>
  assert.is(result.status, 'unknown', JSON.stringify(result))
  return JSON.parse(result.message)
}

const stateOf = async (name: string) => (await svc.request('GET', `/api/extensions/${name}`)).body.extension

test('a process runs while an instance of it is enabled, and its events reach the host', async () => {
  const provider = await svc.adapter('chat')
  const { pid } = await svc.until('chat', extension => extension?.state === 'registered')
  assert.is(pid, undefined)
  assert.equal(
    [provider.platform, provider.capabilities.textLimit, provider.capabilities.edits],
    ['probe', 2000, false],
  )
  assert.equal(await provider.deliver(request('b1', 'hello'), signal), {
    status: 'not_sent',
    permanent: false,
    kind: 'transient_delivery_failure',
    message: 'the process of chat does not run now',
  })

  const host = new FakeHost()
  await provider.manage(
    [managedInstance('b2', { workspaceId: 'ws_1', dmPolicy: 'allowlist' }), managedInstance('b1')],
    host,
  )
  await svc.until('chat', extension => extension?.state === 'active')
  const { bridge } = await told(provider, 'b1', 'about')
  const instance = {
    id: 'b1',
    display_name: 'Bridge b1',
    platform: 'probe',
    scope: 'global',
    provider_config: { greeting: 'hello' },
    dm_policy: 'open',
  }
  assert.equal(bridge, {
    runtime_version: '2',
    purpose: 'service',
    provider: 'chat',
    platform: 'probe',
    managed_instances: [
      { instance, bound_secrets: managedInstance('b1').secrets },
      {
        instance: {
          ...instance,
          id: 'b2',
          display_name: 'Bridge b2',
          scope: 'workspace',
          workspace_id: 'ws_1',
          dm_policy: 'allowlist',
        },
        bound_secrets: managedInstance('b2').secrets,
      },
    ],
  })

  assert.equal(await told(provider, 'b1', 'ingest'), {
    result: { idempotency_key: 'k1', outcome: 'prompted', session_id: 'ses_1' },
  })
  assert.equal(host.events, [
    {
      bridge_instance_id: 'b1',
      idempotency_key: 'k1',
      family: 'message',
      sender: { id: 'u1', authenticated: true },
      peer_id: 'u1',
      text: 'hello',
      addressed: true,
    },
  ])
  assert.equal(await told(provider, 'b1', 'report {"status":"ready"}'), { result: {} })
  assert.equal(host.reports, [{ id: 'b1', state: { status: 'ready' } }])
  assert.equal(await told(provider, 'b1', 'rejected {"remote_message_id":"m1","reason":"no such mailbox"}'), {
    result: { outcome: 'recorded' },
  })
  assert.equal(host.rejected, [
    { bridge_instance_id: 'b1', remote_message_id: 'm1', status: 'failed', reason: 'no such mailbox' },
  ])

  await provider.manage([], host)
  assert.is((await stateOf('chat')).state, 'registered')
  assert.is((await stateOf('chat')).pid, undefined)
  await svc.remove('chat')
  await until(() => svc.provider('chat') === undefined)
})

test('events of another adapter, invalid events and refused ones are returned with a code', async () => {
  const [one, other] = [await svc.adapter('one'), await svc.adapter('other', { platform: 'elsewhere' })]
  const host = new FakeHost()
  await Promise.all([
    one.manage([managedInstance('mine')], host),
    other.manage([managedInstance('theirs')], new FakeHost()),
  ])
  const code = async (text: string) => (await told(one, 'mine', text)).error.data
  assert.is((await code('ingest {"bridge_instance_id":"theirs"}')).code, 'bridge_not_found')
  assert.is((await code('report {"bridge_instance_id":"theirs","status":"ready"}')).code, 'bridge_not_found')
  assert.is((await code('ingest {"colour":"red"}')).code, 'bridge_event_invalid')
  assert.is((await code('ingest {"sender":{"id":"u1"}}')).code, 'bridge_event_invalid')
  assert.is((await code('report {"status":"fine"}')).code, 'bridge_event_invalid')
  assert.is((await code('rejected {"remote_message_id":"m1"}')).code, 'bridge_event_invalid')
  const theirs = '{"bridge_instance_id":"theirs","remote_message_id":"m1","reason":"gone"}'
  assert.is((await code(`rejected ${theirs}`)).code, 'bridge_not_found')
  assert.equal(host.events, [])
  host.refusal = BridgeErrors.bridge_not_accepting('draining', { retryAfter: 2 })
  const { code: refused, status, retry_after_ms } = await code('ingest')
  assert.equal(
    { refused, status, retry_after_ms },
    { refused: 'bridge_not_accepting', status: 503, retry_after_ms: 2000 },
  )
  await Promise.all([one.manage([], host), other.manage([], host)])
})

test('answers are judged: an acknowledgment, garbage, an exception, an end in the middle', async () => {
  const answers = {
    'bridges/targets/snapshot': { targets: [{ group_id: '#ops', display_name: 'ops', target_type: 'channel' }] },
    'bridges/settle': { outcome: 'maybe' },
    'bridges/verify': { checks: [{ check: 'login', status: 'pass' }] },
  }
  const provider = await svc.adapter('judged', {
    bridge: 'can_settle = true\nedits = true\ntext_limit = 512\ntext_unit = "bytes"',
    ways: { answers, more: ['bridges/settle', 'bridges/verify'] },
  })
  const { edits, canSettle, textLimit, textUnit } = provider.capabilities
  assert.equal([edits, canSettle, textLimit, textUnit], [true, true, 512, 'bytes'])
  const host = new FakeHost()
  await provider.manage([managedInstance('b')], host)
  const deliver = (text: string) => provider.deliver(request('b', text), signal)
  assert.equal(await deliver('hello'), { status: 'delivered', remote_message_id: 'm-n1' })
  assert.equal(await deliver('ack'), { status: 'delivered', remote_message_id: 'm1' })
  assert.equal(
    await deliver('garbage {"status":"not_sent","permanent":true,"kind":"missing_token","message":"gone"}'),
    {
      status: 'not_sent',
      permanent: true,
      kind: 'missing_token',
      message: 'gone',
    },
  )
  for (const garbage of ['{"status":"sent"}', '7', 'null', '{"status":"delivered","remote_message_id":7}']) {
    const result = await deliver(`garbage ${garbage}`)
    assert.is(result.status, 'unknown')
    assert.match((result as { message: string }).message, /the answer of judged to bridges\/deliver/)
  }
  const thrown = (await deliver('throw')) as { status: string; message: string }
  assert.is(thrown.status, 'unknown')
  assert.not.match(thrown.message, /s3cret-value/)
  assert.equal(await provider.targets('b', signal), [{ group_id: '#ops', display_name: 'ops', target_type: 'channel' }])
  assert.equal(await provider.verify?.('b', signal), [{ check: 'login', status: 'pass', remediation: '' }])
  assert.equal((await provider.registerWebhook?.('b', signal))?.status, 'skipped')
  const settling = provider.settle?.({ ...request('b', 'x'), since: 1 }, signal)
  assert.is(await settling?.then(String, error => error.code), 'bridge_answer_invalid')
  // What it answered wrongly is told as its own fault.
  const { logs } = (await svc.request('GET', '/api/extensions/judged/logs')).body
  assert.ok(logs.some(({ message }: { message: string }) => /the answer of judged to bridges\/deliver/.test(message)))

  assert.is((await deliver('exit')).status, 'unknown')
  await until(() => host.reports.length > 0)
  const [{ id, state } = { id: '', state: { status: '', message: '' } }] = host.reports
  assert.equal([id, state.status], ['b', 'degraded'])
  assert.match(String(state.message), /code 3/)
  await svc.until('judged', async () => (await deliver('ack')).status === 'delivered')
  await provider.manage([], host)
})

test('a changed set of instances is sent to the process, or to a new process if that cannot take it', async () => {
  const host = new FakeHost()
  const ids = (about: { bridge: { managed_instances: { instance: { id: string } }[] } }) =>
    about.bridge.managed_instances.map(({ instance }) => instance.id)
  for (const [name, ways, stays] of [
    ['sets', { set: true }, true],
    ['restarts', {}, false],
    ['refuses', { set: 'throw' }, false],
  ] as const) {
    const provider = await svc.adapter(name, { ways })
    await provider.manage([managedInstance('a')], host)
    const before = await told(provider, 'a', 'about')
    assert.equal(ids(before), ['a'])
    await provider.manage([managedInstance('b'), managedInstance('a')], host)
    const after = await told(provider, 'a', 'about')
    assert.equal(ids(after), ['a', 'b'], name)
    assert.is(after.pid === before.pid, stays, name)
    assert.is(after.sets, stays ? 1 : 0)
    await provider.manage([], host)
  }
})

test('a process that never starts is abandoned, and its instances are in error', async () => {
  const host = new FakeHost()
  const provider = await svc.adapter('broken', { ways: { at: 'exit' } })
  const refused = await provider.manage([managedInstance('b')], host).then(
    () => undefined,
    error => error,
  )
  assert.equal([refused?.code, /code 4/.test(refused?.message)], ['extension_not_running', true])
  await until(() => host.reports.some(({ state }) => state.status === 'error'))
  assert.equal(
    host.reports.map(({ state }) => state.status),
    ['degraded', 'degraded', 'degraded', 'degraded', 'error'],
  )
  await svc.until('broken', extension => extension?.state === 'error')
  // Nothing needs it any more: it can be tried anew.
  await provider.manage([], host)
  await svc.until('broken', extension => extension?.state === 'registered')
})

test.run()
