// timeout: 120s
import { readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { NAMESPACES, Vault } from '../../../../plugins/access/vault/api.js'
import { daemon, vault } from '../../../../plugins/index.js'
import { probe } from '../../../../testing/traces.js'
import { boot } from '../../../harness/kernel.js'
import { leakOf, partsLike, writingsOf } from '../../../harness/secret-writings.js'
import { type VaultWorld, vaultWorld } from './world.js'

const VALUE = 'correct-horse/battery+staple "ö"'
const REF = 'vault:mcp/global/github/env/TOKEN'
const test = suite<{ world: VaultWorld }>('vault')

test.before.each(async context => {
  context.world = await vaultWorld()
})
test.after.each(async ({ world }) => {
  await world.close()
  await world.remove()
})

test('a stored value is resolved for its consumer, also after a restart', async ({ world }) => {
  const { status, body } = await world.put(REF, VALUE, { kind: 'token' })
  assert.is(status, 200)
  const { ref, namespace, kind, present, version } = body.secret
  assert.equal(
    { ref, namespace, kind, present, version },
    { ref: REF, namespace: 'mcp', kind: 'token', present: true, version: 1 },
  )
  assert.is(await world.resolved(REF), VALUE)
  assert.is(statSync(world.keyFile).mode & 0o777, 0o600)
  await world.close()
  Object.assign(world, await vaultWorld({ home: world.home }))
  assert.is(await world.resolved(REF), VALUE)
  assert.equal(await world.doctor(), ['vault_ok'])
  assert.equal((await world.request('GET', '/api/status')).body.health.vault, {
    status: 'ok',
    secrets: 1,
    damaged: 0,
    key_source: 'file',
  })
})

test('a value stored again keeps its kind and raises its version; a deleted one is gone', async ({ world }) => {
  await world.put(REF, VALUE, { kind: 'token' })
  const { body } = await world.put(REF, 'another-value-1')
  assert.equal([body.secret.kind, body.secret.version], ['token', 2])
  assert.is(await world.resolved(REF), 'another-value-1')
  const url = `/api/vault/secrets?ref=${encodeURIComponent(REF)}`
  assert.is((await world.request('DELETE', url)).status, 204)
  const again = await world.request('DELETE', url)
  assert.equal([again.status, again.body.code], [404, 'vault_secret_not_found'])
  assert.is(await world.resolved(REF), 'secret_missing')
  const shown = await world.request('GET', `/api/vault/secrets/metadata?ref=${encodeURIComponent(REF)}`)
  assert.equal([shown.status, shown.body.code], [404, 'vault_secret_not_found'])
})

test('a list filters secrets by prefix and namespace, without values', async ({ world }) => {
  for (const ref of ['vault:mcp/a/one', 'vault:mcp/a/two', 'vault:mcp/b/one', 'vault:hooks/a/one'])
    await world.put(ref, `value of ${ref}`)
  const list = async (query: string) =>
    (await world.request('GET', `/api/vault/secrets?${query}`)).body.secrets.map(({ ref }: { ref: string }) => ref)
  assert.equal(await list('prefix=vault:mcp/a/'), ['vault:mcp/a/one', 'vault:mcp/a/two'])
  assert.equal(await list('prefix=mcp/a/'), ['vault:mcp/a/one', 'vault:mcp/a/two'], 'the scheme may be left out')
  assert.equal(await list('namespace=hooks'), ['vault:hooks/a/one'])
  assert.equal(await list('namespace=mcp&prefix=vault:hooks'), [])
  const foreign = await world.request('GET', '/api/vault/secrets?namespace=other')
  assert.equal([foreign.status, foreign.body.code], [400, 'vault_namespace_invalid'])
})

test('an invalid reference is refused and not repeated, because it may be a secret', async ({ world }) => {
  const wrong = [
    '',
    'plain-text-secret',
    'env:HOME',
    'vault:',
    'vault:mcp',
    'vault:mcp/',
    'vault:other/a',
    'vault:mcp/A/b',
  ]
  wrong.push(
    'vault:mcp/../a',
    'vault:mcp/a//b',
    'vault:mcp/a/.b',
    'vault:mcp/a/b c',
    'vault:mcp/a\nb',
    `vault:mcp/${'a'.repeat(590)}`,
  )
  for (const ref of wrong) {
    const { status, body } = await world.put(ref, VALUE)
    assert.equal([status, body.code], [400, 'vault_ref_invalid'], ref)
    assert.not.match(JSON.stringify(body), /plain-text|correct-horse/)
  }
  const spaced = await world.put(' vault:mcp/spaced\n', VALUE)
  assert.equal([spaced.status, spaced.body.secret.ref], [200, 'vault:mcp/spaced'], 'texts of a request are trimmed')
  for (const namespace of NAMESPACES) assert.is((await world.put(`vault:${namespace}/a.b-c_d/E`, VALUE)).status, 200)
})

test('a value under 8 bytes needs allow_short, and an unredactable or unusable one is refused', async ({ world }) => {
  const outcome = async (value: string, more = {}) => {
    const { status, body } = await world.put(REF, value, more)
    return status === 200 ? 'stored' : `${status} ${body.code}`
  }
  assert.is(await outcome('1234567'), '400 vault_value_short')
  assert.is(await outcome(''), '400 vault_value_short')
  assert.is(await outcome('1234', { allow_short: true }), 'stored')
  assert.is(await outcome('123', { allow_short: true }), '400 vault_value_short')
  assert.is(await outcome('12345678'), 'stored')
  assert.is(await outcome('with\0a NUL in it'), '400 vault_value_invalid')
  for (const damaged of ['half a pair \ud800 of it', 'the mark \ufffd of damage'])
    assert.is(await outcome(damaged), '400 vault_value_invalid')
  assert.is(await outcome('x'.repeat(64 * 1024)), 'stored')
  assert.is(await outcome('x'.repeat(64 * 1024 + 1)), '400 vault_value_invalid')
})

test('a consumer reads only its own namespace, by reference and by the service', async ({ world }) => {
  const own: Record<string, string> = {
    'vault:providers/claude/API_KEY': 'providers',
    'vault:bridges/brg_1/bot_token': 'bridges',
    'vault:automation/hook/secret': 'automation',
    'vault:mcp/global/github/env/TOKEN': 'mcp',
    'vault:hooks/notify/TOKEN': 'hooks',
    'vault:extensions/acme.mail/env/KEY': 'acme.mail',
    'vault:extensions/clock-node/env/KEY': 'extensions/clock-node',
    'vault:sandbox/box/TOKEN': 'sandboxes',
    'vault:sessions/ses_1/TOKEN': 'sessions',
    'vault:mcp/ws/ws_1/github/TOKEN': 'sessions/ws_1',
  }
  const others = [...Object.values(own), 'sessions/ws_2', 'extensions/clock', 'acme.other', 'daemon', 'constructor']
  for (const ref of Object.keys(own)) await world.put(ref, VALUE)
  for (const [ref, owner] of Object.entries(own)) {
    assert.is(await world.resolved(ref, owner), VALUE, ref)
    const readers = []
    for (const other of others) {
      const result = await world.resolved(ref, other)
      assert.ok([VALUE, 'vault_namespace_foreign'].includes(result), `${other} ${ref} ${result}`)
      if (result === VALUE) readers.push(other)
    }
    const more: Record<string, string[]> = {
      'vault:mcp/global/github/env/TOKEN': ['mcp', 'sessions', 'sessions/ws_1', 'sessions/ws_2'],
      'vault:mcp/ws/ws_1/github/TOKEN': ['mcp', 'sessions', 'sessions/ws_1'],
      'vault:sessions/ses_1/TOKEN': ['sessions', 'sessions/ws_1', 'sessions/ws_2'],
    }
    const expected = more[ref] ?? (owner.includes('/') ? ['extensions', owner] : [owner])
    if (ref.startsWith('vault:extensions/acme')) expected.push('extensions')
    for (const reader of readers) assert.ok(expected.includes(reader), `${reader} reads ${ref}`)
  }
  const { current } = world.inside.needs.vault
  const fault = await current?.reveal('vault:mcp/global/github/env/TOKEN').catch(error => error)
  assert.is(fault.code, 'vault_namespace_foreign')
  assert.equal(current?.list('mcp/'), [], 'nor is it told that there are any')
})

test('an extension stores and reads below its own name', async ({ world }) => {
  await world.close()
  const mail = probe({ vault: Vault })
  const host = await boot({ home: world.home, plugins: [daemon, vault, { ...mail.plugin, name: 'acme.mail' }] })
  const { vault: own } = mail.kernel().needs
  await own.put('vault:extensions/acme.mail/password', VALUE)
  assert.is(await own.reveal('vault:extensions/acme.mail/password'), VALUE)
  assert.equal(
    own.list('extensions/').map(({ ref }) => ref),
    ['vault:extensions/acme.mail/password'],
  )
  for (const ref of ['vault:extensions/acme.mailer/password', 'vault:mcp/a/b']) {
    const fault = await own.put(ref, VALUE).catch(error => error)
    assert.is(fault.code, 'vault_namespace_foreign')
  }
  assert.is(await own.delete('vault:extensions/acme.mail/password'), true)
  await host.close()
  Object.assign(world, await vaultWorld({ home: world.home }))
})

test('no value is in the log, events, errors, replies or files of the home', async ({ world }) => {
  const notices: string[] = []
  const say = async (reply: Promise<{ body: unknown }>) => notices.push(JSON.stringify((await reply).body ?? ''))
  await say(world.put(REF, VALUE))
  await say(world.request('GET', '/api/vault/secrets'))
  await say(world.put(VALUE, VALUE))
  await say(world.put(REF, VALUE, { [VALUE]: 1 }))
  await say(world.request('PUT', '/api/vault/secrets', { ref: REF, secret_value: [VALUE] }))
  await say(world.request('GET', `/api/vault/secrets/metadata?ref=${encodeURIComponent(VALUE)}`))
  for (const text of [`{"ref":"${REF}","secret_value":"${VALUE}`, `${VALUE}`]) {
    const { body } = await world.kernel.inject({ method: 'PUT', url: '/api/vault/secrets', payload: text } as never)
    notices.push(body)
  }
  await say(world.request('POST', '/api/vault/rotate'))
  await say(world.request('GET', '/api/doctor'))
  world.inside.log.warn(`somebody has it: ${VALUE}`)
  await world.request('DELETE', `/api/vault/secrets?ref=${encodeURIComponent(REF)}`)
  world.inside.log.warn(`a process may still have it: ${VALUE}`)
  notices.push(JSON.stringify(world.log))
  await world.close()
  const files = readdirSync(world.home, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
  for (const file of files) notices.push(readFileSync(path.join(file.parentPath, file.name), 'latin1'))
  const writings = Object.entries(writingsOf(VALUE)).map(
    ([name, writing]) => [name, JSON.stringify(writing).slice(1, -1)] as const,
  )
  const parts = notices.map(text =>
    partsLike(
      text,
      writings.map(([, writing]) => writing),
    ),
  )
  for (const [name, writing] of writings)
    for (const text of parts) assert.ok(leakOf(text, writing) <= 8, `${name} in ${text.slice(0, 500)}`)
  Object.assign(world, await vaultWorld({ home: world.home }))
})

test('every value is redacted after a start before any is resolved', async ({ world }) => {
  for (let at = 0; at < 350; at++) await world.put(`vault:mcp/many/n${at}`, `value-number-${at}-of-many`)
  await world.close()
  Object.assign(world, await vaultWorld({ home: world.home }))
  await world.resolved('vault:mcp/many/n7')
  for (const at of [0, 7, 349]) world.inside.log.warn(`it is value-number-${at}-of-many.`)
  const messages = world.log.map(({ msg }) => msg).filter(msg => msg.startsWith('it is'))
  assert.equal(
    messages,
    [0, 7, 349].map(at => `it is [redacted:vault:mcp/many/n${at}].`),
  )
})

test.run()
