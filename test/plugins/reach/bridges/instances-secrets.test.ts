import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { testCases } from '../../../fixtures/cases.js'
import { FakePlatform } from './fake-platform.js'
import { outcome, scene } from './scene.js'

const slots = [
  { name: 'bot_token', kind: 'token', description: 'Token of the bot', required: true },
  { name: 'webhook_secret', kind: 'secret' },
]
const VALUE = 'xoxb-31337-very-secret-value'

const put = (ref: string, value: string | null = VALUE, kind = 'token') => ({
  kind,
  secret_ref: ref,
  secret_value: value,
})

test('an instance with a missing required secret waits for it, and starts when it is bound', async () => {
  const platform = new FakePlatform({ secretSlots: slots })
  const s = await scene([platform])
  const made = await s.create()
  assert.is(made.status, 'starting')
  const { id } = made
  await s.reaches(id, 'auth_required')
  const { health, bridge } = (await s.request('GET', `/api/bridges/${id}`)).body
  assert.match(bridge.degradation.message, /bot_token/)
  assert.equal(
    health.diagnostics.map(({ kind, secret_slot, next_action }: Record<string, string>) => [
      kind,
      secret_slot,
      next_action,
    ]),
    [['missing_token', 'bot_token', `svc bridge secret-bindings put ${id} bot_token`]],
  )
  assert.is(health.auth_failures_total, 0)
  assert.is(platform.managed.length, 0)
  const url = `/api/bridges/${id}/secret-bindings`
  const bound = await s.request('PUT', `${url}/bot_token`, put(`vault:bridges/${id}/bot_token`))
  assert.equal(
    [bound.status, bound.body.binding.binding_name, bound.body.binding.secret_ref],
    [200, 'bot_token', `vault:bridges/${id}/bot_token`],
  )
  await s.reaches(id, 'ready')
  assert.equal(platform.running[0]?.secrets, [{ binding_name: 'bot_token', kind: 'token', value: VALUE }])
  // Another value is told to the adapter, the same one again is not.
  const before = platform.managed.length
  await s.request('PUT', `${url}/bot_token`, put(`vault:bridges/${id}/bot_token`, 'another-secret-value'))
  await s.until('the adapter has it', () => platform.running[0]?.secrets[0]?.value === 'another-secret-value')
  await s.request('PUT', `${url}/bot_token`, put(`vault:bridges/${id}/bot_token`, 'another-secret-value'))
  await s.clock.advance(1000)
  assert.is(platform.managed.length, before + 1)
  assert.is(outcome(await s.request('DELETE', `${url}/bot_token`)), '204')
  await s.reaches(id, 'auth_required')
  await s.until('the adapter ended it', () => platform.running.length === 0)
  assert.equal((await s.request('GET', url)).body.bindings, [])
  await s.end()
})

test('a rejected token is replaced, and the instance restarts', async () => {
  const platform = new FakePlatform({ secretSlots: slots })
  const s = await scene([platform])
  const { id } = await s.create()
  const url = `/api/bridges/${id}/secret-bindings/bot_token`
  await s.request('PUT', url, put(`vault:bridges/${id}/bot_token`))
  await s.reaches(id, 'ready')
  await platform.host.report(id, { status: 'auth_required', reason: 'auth_failed', message: 'invalid_auth' })
  platform.reports = null
  await s.request('PUT', url, put(`vault:bridges/${id}/bot_token`, 'another-secret-value'))
  assert.is(await s.statusOf(id), 'starting')
  await s.end()
})

const BINDINGS: readonly (readonly [
  what: string,
  slot: string,
  body: (id: string) => unknown,
  refusal: string,
  bridge?: string,
])[] = [
  ['an unknown slot', 'nosuch', id => put(`vault:bridges/${id}/nosuch`), '404 bridge_slot_unknown'],
  ['an unknown bridge', 'bot_token', () => put('vault:bridges/nosuch/bot_token'), '404 bridge_not_found', 'nosuch'],
  ['another bridge', 'bot_token', () => put('vault:bridges/other/bot_token'), '400 bridge_binding_invalid'],
  ['another namespace', 'bot_token', id => put(`vault:providers/${id}/bot_token`), '400 bridge_binding_invalid'],
  ['a variable', 'bot_token', () => put('env:BOT_TOKEN'), '400 bridge_binding_invalid'],
  ['a blank value', 'bot_token', id => put(refOf(id), ' '), '400 bridge_binding_invalid'],
  ['a short value', 'bot_token', id => put(refOf(id), 'short'), '400 vault_value_short'],
  ['no value', 'bot_token', id => put(refOf(id), null), '400 bridge_binding_invalid'],
  [
    'an oversized value',
    'bot_token',
    id => put(refOf(id), 'x'.repeat(4 * 1024 * 1024 + 1)),
    '400 bridge_binding_invalid',
  ],
  ['another shape', 'bot_token', id => ({ secret_ref: refOf(id), secret_value: VALUE }), '400 invalid_request'],
]
const refOf = (id: string) => `vault:bridges/${id}/bot_token`

testCases({
  open: async () => {
    const s = await scene([new FakePlatform({ secretSlots: slots })])
    return { s, id: (await s.create()).id as string }
  },
  close: ({ s }) => s.end(),
  cases: BINDINGS,
  name: ([what, , , refusal]) => `a binding is refused: ${what} (${refusal})`,
  run: async ({ s, id }, [, slot, body, refusal, bridge = id]) =>
    assert.is(outcome(await s.request('PUT', `/api/bridges/${bridge}/secret-bindings/${slot}`, body(id))), refusal),
  after: [
    'a refused binding stores nothing, and a missing one cannot be deleted',
    async ({ s, id }) => {
      const at = `/api/bridges/${id}/secret-bindings`
      assert.is(outcome(await s.request('DELETE', `${at}/bot_token`)), '404 bridge_binding_not_found')
      assert.is(outcome(await s.request('DELETE', `${at}/nosuch`)), '404 bridge_slot_unknown')
      assert.equal((await s.request('GET', at)).body.bindings, [])
      assert.equal((await s.request('GET', '/api/vault/secrets')).body.secrets, [])
    },
  ],
})

test('a secret of the vault is bound without its value', async () => {
  const platform = new FakePlatform({ secretSlots: slots })
  const s = await scene([platform])
  const { id } = await s.create()
  const ref = `vault:bridges/${id}/bot_token`
  await s.request('PUT', '/api/vault/secrets', { ref, secret_value: VALUE })
  await s.request('PUT', `/api/bridges/${id}/secret-bindings/bot_token`, { kind: 'token', secret_ref: ref })
  await s.reaches(id, 'ready')
  assert.is(platform.running[0]?.secrets[0]?.value, VALUE)
  await s.end()
})

test('a change or deletion of a secret in the vault reaches the adapter', async () => {
  const platform = new FakePlatform({ secretSlots: slots })
  const s = await scene([platform])
  const { id } = await s.create()
  const ref = `vault:bridges/${id}/bot_token`
  await s.request('PUT', `/api/bridges/${id}/secret-bindings/bot_token`, put(ref))
  await s.reaches(id, 'ready')
  const store = (secret_value: string) => s.request('PUT', '/api/vault/secrets', { ref, secret_value })
  await store('another-secret-value')
  await s.until('the adapter has it', () => platform.running[0]?.secrets[0]?.value === 'another-secret-value')
  await platform.host.report(id, { status: 'auth_required', reason: 'auth_failed', message: 'invalid_auth' })
  platform.reports = null
  await store('a-third-secret-value')
  await s.reaches(id, 'starting')
  const slot = `vault:bridges/${id}/webhook_secret`
  await s.request('PUT', '/api/vault/secrets', { ref: slot, secret_value: VALUE })
  await s.clock.advance(1000)
  assert.is(platform.running[0]?.secrets.length, 1, 'a slot is bound by its binding alone')
  await s.request('DELETE', `/api/vault/secrets?ref=${encodeURIComponent(ref)}`)
  await s.reaches(id, 'auth_required')
  await s.until('the adapter ended it', () => platform.running.length === 0)
  assert.equal((await s.request('GET', `/api/bridges/${id}/secret-bindings`)).body.bindings, [])
  await s.end()
})

test('a value is limited to 64 KiB, and a longer one is refused with the limit', async () => {
  const platform = new FakePlatform({ secretSlots: slots })
  const s = await scene([platform])
  const { id } = await s.create()
  const ref = `vault:bridges/${id}/bot_token`
  const bind = (value: string) => s.request('PUT', `/api/bridges/${id}/secret-bindings/bot_token`, put(ref, value))
  const value = 'key-of-16-bytes\n'.repeat(4096)
  for (const long of [`${value}x`, 'x'.repeat(4 * 1024 * 1024)]) {
    const { status, body } = await bind(long)
    assert.equal([status, body.code, body.error], [400, 'bridge_binding_invalid', 'secret_value: longer than 64 KiB'])
  }
  assert.is((await bind(value)).status, 200)
  await s.reaches(id, 'ready')
  assert.is(platform.running[0]?.secrets[0]?.value, value, 'the adapter has all of it')
  await s.end()
})

test('the value of a secret is in no reply, event, log line or file', async () => {
  const platform = new FakePlatform({ secretSlots: slots })
  const s = await scene([platform])
  const { id } = await s.create()
  const replies = [
    await s.request('PUT', `/api/bridges/${id}/secret-bindings/bot_token`, put(`vault:bridges/${id}/bot_token`)),
  ]
  await s.reaches(id, 'ready')
  platform.checks = [{ check: 'token', status: 'fail', remediation: `the token ${VALUE} was rejected` }]
  platform.webhook = { check: 'webhook', status: 'fail', remediation: `https://bot:${VALUE}@chat.example` }
  await platform.host.report(id, { status: 'degraded', message: `could not log in with ${VALUE}` })
  platform.failNext({ message: `rejected ${VALUE}` })
  for (const [method, url, body] of [
    ['GET', `/api/bridges/${id}`],
    ['GET', '/api/bridges'],
    ['GET', '/api/bridges/providers'],
    ['GET', `/api/bridges/${id}/secret-bindings`],
    ['POST', `/api/bridges/${id}/verify`],
    ['POST', `/api/bridges/${id}/webhook/register`],
    ['POST', `/api/bridges/${id}/send-test`, { message: 'hi', target: { peer_id: 'ada' } }],
    ['GET', `/api/resources/bridge.instance/${id}`],
    ['GET', '/api/doctor'],
    ['GET', '/api/status'],
  ] as const)
    replies.push(await s.request(method, url, body))
  platform.refusals.push(`no login with ${VALUE}`)
  await s.request('POST', `/api/bridges/${id}/restart`)
  await s.until('it was refused', () => platform.refusals.length === 0)
  replies.push(await s.request('GET', `/api/bridges/${id}`))
  assert.not.match(JSON.stringify(replies), VALUE)
  assert.not.match(JSON.stringify(await s.inside().needs.events.list({})), VALUE)
  assert.not.match(JSON.stringify(s.host.log), VALUE)
  await s.leave()
  const files = (await readdir(s.home, { recursive: true, withFileTypes: true })).filter(file => file.isFile())
  assert.ok(files.length > 3)
  for (const file of files) {
    const bytes = await readFile(path.join(file.parentPath, file.name))
    assert.is(bytes.includes(VALUE), false, file.name)
  }
  await s.clean()
})

test('a deleted bridge leaves nothing: secrets, targets and state are deleted in one transaction', async () => {
  const platform = new FakePlatform({
    secretSlots: slots,
    targets: [{ group_id: '#ops', display_name: 'ops', target_type: 'channel' }],
  })
  const s = await scene([platform])
  const { id } = await s.create()
  await s.request('PUT', `/api/bridges/${id}/secret-bindings/bot_token`, put(`vault:bridges/${id}/bot_token`))
  await s.reaches(id, 'ready')
  await s.until(
    'the directory is read',
    async () => (await s.host.request('GET', `/api/bridges/${id}/targets`)).body.total === 1,
  )
  const { record } = (await s.request('GET', `/api/resources/bridge.instance/${id}`)).body
  await s.request('DELETE', `/api/resources/bridge.instance/${id}`, { expected_version: record.version })
  assert.equal((await s.request('GET', '/api/vault/secrets')).body.secrets, [])
  for (const table of ['bridges_state', 'bridges_secret', 'bridges_target'])
    assert.equal(s.inside().db.all(`SELECT * FROM ${table}`), [], table)
  await s.until('the adapter ended it', () => platform.running.length === 0)
  assert.is(outcome(await s.request('GET', `/api/bridges/${id}`)), '404 bridge_not_found')
  await s.end()
})

test.run()
