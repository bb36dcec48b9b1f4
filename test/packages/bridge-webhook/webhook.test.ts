import { createHmac } from 'node:crypto'
import { request } from 'node:http'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { RpcError } from '../../../packages/bridge-kit/src/index.js'
import { openWebhook } from '../../../packages/bridge-webhook/src/bridge.js'
import { manifest } from '../../../packages/bridge-webhook/src/manifest.js'
import { keyOf, signed, verified } from '../../../packages/bridge-webhook/src/signature.js'
import { label } from '../../fixtures/cases.js'
import { freePort } from '../../harness/free-port.js'
import { type Answer, HttpEndpoint } from '../../harness/http-endpoint.js'
import { managed, ScriptedDaemon } from '../bridge-kit/scripted-daemon.js'

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const running = new Set<() => Promise<unknown>>()
test.after.each(async () => {
  for (const stop of running) await stop()
  running.clear()
})

async function start(more: object = {}, secrets: Readonly<Record<string, string>> = { webhook_secret: SECRET }) {
  const port = await freePort()
  const config = { listen_addr: `127.0.0.1:${port}`, path: '/hooks/agent', ...more }
  const daemon = ScriptedDaemon.inProcess({ ...manifest, open: openWebhook })
  running.add(() => daemon.shutdown())
  await daemon.initialize([managed('bri_1', config, secrets)])
  await daemon.until(() => daemon.reports.find(({ status }) => status !== 'starting'), 'a state')
  const url = `http://127.0.0.1:${port}/hooks/agent`
  const post = async (body: string, headers: Readonly<Record<string, string>>, to = url) => {
    const response = await fetch(to, { method: 'POST', body, headers })
    return {
      status: response.status,
      headers: response.headers,
      body: (await response.json().catch(() => undefined)) as never,
    }
  }
  const event = (id: string, body: unknown, seconds = Math.floor(Date.now() / 1000), key = SECRET) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return post(text, signed(keyOf(key), id, seconds, text))
  }
  return { daemon, port, url, post, event }
}
async function receiver(answer: (body: string) => Answer) {
  const endpoint = await HttpEndpoint.start(({ body }) => answer(body))
  running.add(() => endpoint.close())
  return endpoint
}

test('signatures follow Standard Webhooks', () => {
  // From the test suite of the reference libraries.
  const body = Buffer.from('{"test": 2432232314}')
  const headers = {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,other v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  }
  assert.equal(verified(keyOf(SECRET), { headers, body }, 1614265330, 300), { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek' })
  const refused = (more: Record<string, string>, now = 1614265330, data = body) =>
    'refused' in verified(keyOf(SECRET), { headers: { ...headers, ...more }, body: data }, now, 300)
  assert.not(refused({}, 1614265330 + 300))
  assert.ok(refused({}, 1614265330 + 301))
  assert.ok(refused({}, 1614265330 - 301))
  assert.ok(refused({ 'webhook-timestamp': '1614265331' }))
  assert.ok(refused({ 'webhook-id': 'msg_other' }))
  assert.ok(refused({ 'webhook-id': '' }))
  assert.ok(refused({ 'webhook-timestamp': '1e9' }))
  assert.ok(refused({ 'webhook-signature': '' }))
  assert.ok(refused({ 'webhook-signature': 'v1,' }))
  assert.ok(refused({ 'webhook-signature': 'v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=' }))
  assert.ok(refused({}, 1614265330, Buffer.from('{"test": 2432232315}')))
})

test('an event arrives once, and its repetition gets the same reply', async () => {
  const { daemon, event, url } = await start({ trust_senders: true })
  assert.is((await daemon.status('ready')).webhook_public_url, url)
  const body = {
    sender: { id: 'ann', display_name: 'Ann', authenticated: true },
    group_id: 'support',
    thread_id: 't1',
    message_id: 'm1',
    text: 'How many?',
    attachments: [{ name: 'a.txt', mime_type: 'text/plain', data: 'aGk=' }],
  }
  const first = await event('evt_1', body)
  assert.is(first.status, 200)
  assert.equal(first.body, { idempotency_key: 'evt_1', outcome: 'prompted' })
  assert.equal(await event('evt_1', body).then(({ body }) => body), first.body)
  assert.is(daemon.events.length, 1)
  assert.equal(daemon.events[0], {
    bridge_instance_id: 'bri_1',
    idempotency_key: 'evt_1',
    family: 'message',
    sender: { id: 'ann', authenticated: true, display_name: 'Ann' },
    peer_id: 'ann',
    group_id: 'support',
    thread_id: 't1',
    message_id: 'm1',
    text: 'How many?',
    addressed: true,
    attachments: [{ name: 'a.txt', mime_type: 'text/plain', data: 'aGk=' }],
  })
})

test('a sender is authenticated only with the setting of the operator', async () => {
  const { daemon, event } = await start()
  await event('evt_1', { sender: { id: 'ann', authenticated: true }, text: 'hi' })
  assert.not(daemon.events[0]?.sender.authenticated)
})

test('a forged, old, malformed or oversized request is refused before the daemon', async () => {
  const { daemon, event, post, url, port } = await start()
  const body = { sender: { id: 'ann' }, text: 'hi' }
  const now = Math.floor(Date.now() / 1000)
  assert.is((await event('e', body, now, `${SECRET}BBBB`)).status, 401)
  assert.is((await event('e', body, now - 1000)).status, 401)
  assert.is((await post(JSON.stringify(body), {})).status, 401)
  const bad: unknown[] = [
    'no json',
    '[]',
    'null',
    {},
    { sender: {}, text: 'x' },
    { sender: { id: 7 }, text: 'x' },
    { sender: { id: 'a'.repeat(257) }, text: 'x' },
    { sender: { id: 'ann' } },
    { sender: { id: 'ann' }, text: 7 },
    { sender: { id: 'ann' }, text: 'x', family: 'other' },
    { sender: { id: 'ann' }, text: 'x', addressed: 'yes' },
    { sender: { id: 'ann' }, text: 'x', group_id: {} },
    { sender: { id: 'ann' }, text: 'x', attachments: [{ name: '../x', mime_type: 'a/b', data: '' }] },
    { sender: { id: 'ann' }, text: 'x', attachments: [{ name: 'x', mime_type: 'a/b', data: '!' }] },
    { sender: { id: 'ann' }, text: 'x', attachments: [{ name: 'x', mime_type: 'a/b', data: 'A'.repeat(7_100_000) }] },
    { sender: { id: 'ann' }, text: 'x', attachments: Array(11).fill({ name: 'x', mime_type: 'a/b', data: '' }) },
  ]
  for (const one of bad) assert.is((await event('e', one)).status, 400, JSON.stringify(one).slice(0, 100))
  assert.is((await fetch(url)).status, 405)
  assert.is((await post('{}', {}, `http://127.0.0.1:${port}/other`)).status, 404)
  const long = await new Promise<number | undefined>((resolve, reject) => {
    const headers = { 'content-length': String(13 * 1024 * 1024) }
    const sent = request(url, { method: 'POST', headers }, response => resolve(response.statusCode))
    sent.on('error', reject)
    sent.flushHeaders()
  })
  assert.is(long, 413)
  assert.is(daemon.events.length, 0)
})

test('the sender gets a retry time while the daemon is busy, and the event then arrives once', async () => {
  const { daemon, event } = await start()
  daemon.ingest = () => {
    throw new RpcError(-32000, 'no such instance', { code: 'bridge_not_found' })
  }
  const body = { sender: { id: 'ann' }, text: 'hi' }
  const refused = await event('evt_1', body)
  assert.is(refused.status, 503)
  assert.ok(Number(refused.headers.get('retry-after')) > 0)
  daemon.ingest = ({ idempotency_key }) => ({ idempotency_key, outcome: 'prompted' })
  assert.is((await event('evt_1', body)).status, 200)
  daemon.ingest = () => {
    throw new RpcError(-32602, 'no text', { code: 'bridge_event_invalid' })
  }
  assert.is((await event('evt_2', body)).status, 400)
})

test('an answer is a signed request with the same id at each attempt', async () => {
  const endpoint = await receiver(() => ({ body: { message_id: 'remote-1' } }))
  const secrets = { webhook_secret: SECRET, delivery_secret: 'another secret of many bytes' }
  const { daemon } = await start({ delivery_url: `${endpoint.url}/in` }, secrets)
  const delivery = daemon.delivery('bri_1', { group_id: 'support', peer_id: 'ann' }, 'Seven.')
  assert.equal(await daemon.deliver(delivery), { status: 'delivered', remote_message_id: 'remote-1' })
  await daemon.deliver(delivery)
  const [first, second] = endpoint.received
  assert.is(first?.headers['webhook-id'], delivery.nonce)
  assert.is(second?.headers['webhook-id'], delivery.nonce)
  const { 'webhook-timestamp': at, 'webhook-signature': signature } = first?.headers ?? {}
  const hmac = createHmac('sha256', secrets.delivery_secret).update(`${delivery.nonce}.${at}.${first?.body}`)
  assert.is(signature, `v1,${hmac.digest('base64')}`)
  assert.equal(JSON.parse(first?.body ?? ''), {
    type: 'message',
    id: delivery.nonce,
    event: 'final',
    bridge_instance_id: 'bri_1',
    delivery_id: delivery.delivery_id,
    part: 0,
    group_id: 'support',
    peer_id: 'ann',
    text: 'Seven.',
  })
  assert.equal(await daemon.say('bri_1', {}, 'growing', { event: 'delta' }), { status: 'delivered' })
  assert.is(endpoint.received.length, 2)
})

test('the status of the receiver decides: retry, permanent, or unknown', async () => {
  let answer: Answer = {}
  const endpoint = await receiver(() => answer)
  const { daemon } = await start({ delivery_url: `${endpoint.url}/` })
  const say = async (next: Answer) => {
    answer = next
    return daemon.say('bri_1', { peer_id: 'ann' }, 'x')
  }
  const later = await say({ status: 429, headers: { 'retry-after': '7' } })
  assert.ok(later.status === 'not_sent' && !later.permanent && later.retry_after_ms === 7000)
  const busy = await say({ status: 503 })
  assert.ok(busy.status === 'not_sent' && !busy.permanent)
  for (const [status, kind] of [
    [401, 'permission_denied'],
    [404, 'unknown_destination'],
    [302, 'unknown_destination'],
    [422, 'unsupported_capability'],
  ] as const) {
    const result = await say({ status, headers: { location: `${endpoint.url}/elsewhere` } })
    assert.ok(result.status === 'not_sent' && result.permanent && result.kind === kind, String(status))
  }
  assert.not(endpoint.received.some(({ path }) => path === '/elsewhere'))
  assert.is((await say({ status: 500 })).status, 'unknown')
  assert.is((await say({ cut: true })).status, 'unknown')
  assert.equal(await say({ body: { message_id: 7 } }), { status: 'delivered' })
  await endpoint.close()
  const away = await say({})
  assert.ok(away.status === 'not_sent' && !away.permanent)
})

const reportOf = async (more: object, secrets?: Readonly<Record<string, string>>) => {
  const { daemon } = await start(more, secrets)
  return daemon.until(() => daemon.reports.find(({ status }) => /error|auth_required/.test(status)), 'a failure')
}

for (const more of [
  { listen_addr: '0.0.0.0:8787' },
  { listen_addr: '127.0.0.1:99999' },
  { listen_addr: '127.0.0.999:80' },
  { path: 'hooks' },
  { path: '/a b' },
  { public_url: 'ftp://x' },
  { delivery_url: 'http://example.org/in' },
  { delivery_url: 'http://127.0.0.1.example.org/' },
  { tolerance_seconds: 100_000 },
])
  test(`unsafe settings are refused: ${label(more)}`, async () =>
    assert.is((await reportOf(more)).reason, 'tenant_config_invalid'))

test('a missing secret, a short one and a taken address are named', async () => {
  assert.is((await reportOf({}, {})).status, 'auth_required')
  assert.is((await reportOf({}, { webhook_secret: 'short' })).reason, 'tenant_config_invalid')
  const endpoint = await receiver(() => ({}))
  const taken = await reportOf({ listen_addr: `127.0.0.1:${endpoint.port}` })
  assert.is(taken.reason, 'webhook_invalid')
})

test('two instances share an address by their paths, and a path belongs to one', async () => {
  const { daemon, port, event } = await start()
  const config = (path: string) => ({ listen_addr: `127.0.0.1:${port}`, path })
  const secrets = { webhook_secret: SECRET }
  const own = managed('bri_1', config('/hooks/agent'), secrets)
  await daemon.set([own, managed('bri_2', config('/two'), secrets), managed('bri_3', config('/hooks/agent'), secrets)])
  const failed = await daemon.until(() => daemon.reports.find(({ status }) => status === 'error'), 'a failure')
  assert.is(failed.bridge_instance_id, 'bri_3')
  await daemon.until(
    () => daemon.reports.find(one => one.bridge_instance_id === 'bri_2' && one.status === 'ready'),
    'two',
  )
  const text = JSON.stringify({ sender: { id: 'ann' }, text: 'to two' })
  const headers = signed(keyOf(SECRET), 'evt_2', Math.floor(Date.now() / 1000), text)
  await fetch(`http://127.0.0.1:${port}/two`, { method: 'POST', body: text, headers })
  assert.is((await daemon.heard('to two')).bridge_instance_id, 'bri_2')
  await daemon.set([own])
  assert.is((await fetch(`http://127.0.0.1:${port}/two`, { method: 'POST', body: text, headers })).status, 404)
  assert.is((await event('evt_3', { sender: { id: 'ann' }, text: 'to one' })).status, 200)
})

test.run()
