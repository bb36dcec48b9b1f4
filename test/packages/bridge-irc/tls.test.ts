import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { openIrc } from '../../../packages/bridge-irc/src/bridge.js'
import { manifest } from '../../../packages/bridge-irc/src/manifest.js'
import { Authority } from '../../harness/certificates.js'
import { Ngircd } from '../../harness/chat-servers.js'
import { builtBridge } from '../bridge-kit/built.js'
import { managed, ScriptedDaemon } from '../bridge-kit/scripted-daemon.js'

let folder: string
let authority: Authority
/** Its certificate is for `localhost`, of the authority. */
let server: Ngircd
/** Its certificate is for `localhost`, of itself. */
let alone: Ngircd
let ownPem: string

test.before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-certificates-'))
  await chmod(folder, 0o755)
  authority = await Authority.in(folder)
  const own = await authority.selfSigned('DNS:localhost')
  ownPem = await Authority.read(own)
  server = await Ngircd.start({ global: 'Password = for-nobody-else', tls: await authority.issue('DNS:localhost') })
  alone = await Ngircd.start({ global: 'Password = for-nobody-else', tls: own })
})
test.after(async () => {
  await server?.remove()
  await alone?.remove()
  await rm(folder, { recursive: true, force: true })
})

/** What a test opened is closed behind it, also behind one that fails. */
const closing: (() => Promise<unknown>)[] = []
test.after.each(async () => {
  await Promise.all(closing.splice(0).map(close => close().catch(() => {})))
})

async function connect(to: Ngircd, more: object = {}): Promise<ScriptedDaemon> {
  const daemon = ScriptedDaemon.inProcess({ ...manifest, open: openIrc })
  closing.push(() => daemon.shutdown())
  const config = { server: 'localhost', port: to.tlsPort, nick: 'svcbot', channels: ['#ops'], ...more }
  await daemon.initialize([managed('bri_1', config, { server_password: 'for-nobody-else' })])
  return daemon
}

test('messages pass over TLS with a certificate of a configured authority', async () => {
  const daemon = await connect(server, { tls_ca: authority.pem })
  await daemon.status('ready')
  assert.equal(await daemon.say('bri_1', { group_id: '#ops' }, 'hello'), { status: 'delivered' })
  const checks = await daemon.verify('bri_1')
  assert.ok(
    checks.every(({ status }) => status === 'pass'),
    JSON.stringify(checks),
  )
  // One that signed itself can be trusted by itself, also where line breaks became blanks.
  const pinned = await connect(alone, { tls_ca: ownPem.replace(/\n/g, ' ') })
  await pinned.status('ready')
})

test('an untrusted certificate is refused with the cause and the setting', async () => {
  for (const [to, more] of [
    [server, {}],
    [alone, {}],
    [alone, { tls_ca: authority.pem }],
  ] as const) {
    const daemon = await connect(to, more)
    const { message = '', reason } = await daemon.status('degraded')
    assert.is(reason, 'provider_timeout')
    assert.match(message, /^localhost: the certificate is not trusted: .*(self-signed|unable to verify|unable to get)/)
    assert.match(message, /set tls_ca/)
    const [connected] = await daemon.verify('bri_1')
    assert.is(connected?.status, 'fail')
    assert.match(connected?.remediation ?? '', /the certificate is not trusted/)
    assert.not(daemon.reports.some(({ status }) => status === 'ready'))
  }
})

test('a certificate for another name is refused, also of a trusted authority, unless verification is off', async () => {
  const daemon = await connect(server, { server: '127.0.0.1', tls_ca: authority.pem })
  const { message = '' } = await daemon.status('degraded')
  assert.match(message, /^127\.0\.0\.1: the certificate is not for 127\.0\.0\.1: /)
  const careless = await connect(server, { server: '127.0.0.1', tls_verify: false })
  await careless.status('ready')
})

test('an invalid authority file is refused before anything is sent', async () => {
  for (const tls_ca of ['/etc/ssl/ca.pem', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----', 7]) {
    const daemon = await connect(server, { tls_ca })
    assert.match((await daemon.status('error')).message ?? '', /provider_config\.tls_ca/)
  }
})

test('the built file works over TLS', async () => {
  const daemon = ScriptedDaemon.ofProgram(builtBridge('irc'))
  closing.push(() => daemon.shutdown())
  const config = {
    server: 'localhost',
    port: server.tlsPort,
    nick: 'svcbot',
    channels: ['#ops'],
    tls_ca: authority.pem,
  }
  await daemon.initialize([managed('bri_1', config, { server_password: 'for-nobody-else' })])
  await daemon.status('ready')
  assert.equal(await daemon.say('bri_1', { group_id: '#ops' }, 'hello'), { status: 'delivered' })
})

test.run()
