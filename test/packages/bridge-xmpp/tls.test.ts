// timeout: 120s
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { realTiming, type Timing } from '../../../packages/bridge-kit/src/index.js'
import { openXmpp } from '../../../packages/bridge-xmpp/src/bridge.js'
import { manifest } from '../../../packages/bridge-xmpp/src/manifest.js'
import { Authority } from '../../harness/certificates.js'
import { Prosody } from '../../harness/chat-servers.js'
import { Wire } from '../../harness/mail-servers.js'
import { builtBridge } from '../bridge-kit/built.js'
import { managed, ScriptedDaemon } from '../bridge-kit/scripted-daemon.js'

const users = { bot: 'secret', ann: 'secret' }
let folder: string
let authority: Authority
/** Its certificate is for the domain of the accounts. */
let server: Prosody
/** Its certificate is for the host that is connected to. */
let other: Prosody

const timers = () => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
let before: number
test.before(async () => {
  before = timers()
  folder = await mkdtemp(join(tmpdir(), 'svc-certificates-'))
  await chmod(folder, 0o755)
  authority = await Authority.in(folder)
  server = await Prosody.start({ users, tls: await authority.issue('DNS:localhost') })
  other = await Prosody.start({ users, tls: await authority.issue('IP:127.0.0.1', 'DNS:chat.example.test') })
})
test.after(async () => {
  await server?.remove()
  await other?.remove()
  await rm(folder, { recursive: true, force: true })
})

/** What a test opened is closed behind it, also behind one that fails. */
const closing: (() => Promise<unknown>)[] = []
test.after.each(async () => {
  await Promise.all(closing.splice(0).map(close => close().catch(() => {})))
})

/** A pause before a new connection ends at once. */
const hasty: Timing = { ...realTiming, random: () => 0 }

async function connect(more: object): Promise<ScriptedDaemon> {
  const daemon = ScriptedDaemon.inProcess({ ...manifest, open: (instance, host) => openXmpp(instance, host, hasty) })
  closing.push(() => daemon.shutdown())
  // The host is no name of the domain: a certificate that is checked for it would not do.
  const config = { jid: 'bot@localhost', server: '127.0.0.1', catch_up_minutes: 0, ...more }
  await daemon.initialize([managed('bri_1', config, { password: 'secret' })])
  return daemon
}

/** Somebody else with an account, whose words are those of an adapter. */
const ann = (way: object) => connect({ jid: 'ann@localhost', ...way, tls_ca: authority.pem })

const ways = (of: Prosody) => [
  { tls: 'starttls', port: of.port },
  { tls: 'direct', port: of.tlsPort },
]

test('STARTTLS and direct TLS work with a certificate for the domain from a trusted authority', async () => {
  const [starttls, direct] = ways(server)
  const [one, other] = [await connect({ ...starttls, tls_ca: authority.pem }), await ann(direct ?? {})]
  await Promise.all([one.status('ready'), other.status('ready')])
  assert.is((await one.say('bri_1', { peer_id: 'ann@localhost' }, 'from the bot')).status, 'delivered')
  assert.is((await other.heard('from the bot')).sender.id, 'bot@localhost')
  assert.is((await other.say('bri_1', { peer_id: 'bot@localhost' }, 'from ann')).status, 'delivered')
  assert.is((await one.heard('from ann')).sender.id, 'ann@localhost')
})

test('an untrusted certificate is refused with the cause and the setting', async () => {
  for (const way of ways(server)) {
    const daemon = await connect(way)
    const { message = '' } = await daemon.status('degraded')
    assert.match(message, /^bot@localhost: the certificate is not trusted: .*unable to/)
    assert.match(message, /set tls_ca/)
    assert.match((await daemon.verify('bri_1'))[0]?.remediation ?? '', /the certificate is not trusted/)
  }
})

test('a certificate only for the host is refused: it must be for the domain of the account', async () => {
  for (const way of ways(other)) {
    const daemon = await connect({ ...way, tls_ca: authority.pem })
    const { message = '' } = await daemon.status('degraded')
    assert.match(message, /^bot@localhost: the certificate is not for localhost: /)
    assert.not(daemon.reports.some(({ status }) => status === 'ready'))
  }
})

test('a connection with a stripped STARTTLS offer is not used', async () => {
  const wire = await Wire.to(server.port)
  closing.push(() => wire.close())
  const requests: string[] = []
  wire.altered = chunk => Buffer.from(String(chunk).replace(/<starttls.*?<\/starttls>|<starttls[^>]*\/>/s, ''))
  wire.asked = chunk => {
    requests.push(String(chunk))
    return chunk
  }
  const daemon = await connect({ tls: 'starttls', port: wire.port, tls_ca: authority.pem })
  const { message = '' } = await daemon.until(
    () => daemon.reports.find(({ status }) => status === 'error' || status === 'degraded'),
    'a refusal',
  )
  assert.match(message, /bot@localhost: .*(no encryption|took longer)/)
  assert.not(
    requests.some(said => /<auth/.test(said)),
    'nothing of the login goes over it',
  )
})

test('data injected before the encryption is no message', async () => {
  const wire = await Wire.to(server.port)
  closing.push(() => wire.close())
  const daemon = await connect({ tls: 'starttls', port: wire.port, tls_ca: authority.pem })
  await daemon.status('ready')
  const before = daemon.reports.length
  const forged = "<message from='ann@localhost/x' to='bot@localhost' type='chat'><body>forged</body></message>"
  let isForged = false
  wire.altered = chunk => {
    const text = chunk.toString('latin1')
    // Before the offer, and in one packet with the word after which the encryption begins.
    if (text.includes('<starttls')) return Buffer.from(text.replace('<stream:features', `${forged}$&`), 'latin1')
    if (!text.includes('<proceed')) return chunk
    isForged = true
    return Buffer.from(text + forged, 'latin1')
  }
  wire.cut()
  await daemon.status('ready', before)
  assert.ok(isForged)
  const other = await ann({ tls: 'starttls', port: server.port })
  await other.status('ready')
  await other.say('bri_1', { peer_id: 'bot@localhost' }, 'hello')
  await daemon.heard('hello')
  assert.equal(
    daemon.events.map(({ text }) => text),
    ['hello'],
  )
})

test('the built file works over TLS', async () => {
  for (const way of ways(server)) {
    const daemon = ScriptedDaemon.ofProgram(builtBridge('xmpp'))
    closing.push(() => daemon.shutdown())
    const config = { jid: 'bot@localhost', server: '127.0.0.1', catch_up_minutes: 0, tls_ca: authority.pem, ...way }
    await daemon.initialize([managed('bri_1', config, { password: 'secret' })])
    await daemon.status('ready')
    assert.is((await daemon.verify('bri_1'))[0]?.status, 'pass')
    await daemon.shutdown()
  }
})

test('closed bridges leave no timer that keeps their process alive', async () => {
  const until = performance.now() + 5000
  while (timers() > before && performance.now() < until) await realTiming.sleep(50)
  assert.ok(timers() <= before, `${timers() - before} timers`)
})

test.run()
