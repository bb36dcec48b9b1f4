// timeout: 120s
import { xml } from '@xmpp/client'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { realTiming, type Timing } from '../../../packages/bridge-kit/src/index.js'
import { openXmpp } from '../../../packages/bridge-xmpp/src/bridge.js'
import { manifest } from '../../../packages/bridge-xmpp/src/manifest.js'
import { Prosody } from '../../harness/chat-servers.js'
import { managed, ScriptedDaemon } from '../bridge-kit/scripted-daemon.js'
import { Person } from './person.js'

const users = { bot: 'secret', ann: 'secret', ben: 'secret', gus: 'secret' }
const room = 'ops@rooms.localhost'
let server: Prosody
const instance = (more: object = {}, secrets: Record<string, string> = { password: 'secret' }) =>
  managed(
    'bri_1',
    { jid: 'bot@localhost', server: '127.0.0.1', port: server.port, tls: 'none', catch_up_minutes: 0, ...more },
    secrets,
  )
/** Rooms that are tried again every 25 s are tried every 400 ms. */
const hasty: Timing = { ...realTiming, sleep: (ms, signal) => realTiming.sleep(ms === 25_000 ? 400 : ms, signal) }
const start = async (...instances: ReturnType<typeof managed>[]) => {
  const daemon = ScriptedDaemon.inProcess({ ...manifest, open: (instance, host) => openXmpp(instance, host, hasty) })
  closing.push(() => daemon.shutdown())
  await daemon.initialize(instances)
  return daemon
}
const person = async (user: string) => {
  const one = await Person.login(server.port, user, 'secret')
  closing.push(() => one.leave())
  return one
}

/** What a test opened is closed behind it, also behind one that fails. */
const closing: (() => Promise<unknown>)[] = []
test.after.each(async () => {
  await Promise.all(closing.splice(0).map(close => close().catch(() => {})))
})
test.before(async () => {
  server = await Prosody.start({ users })
})
test.after(() => server.remove())

test('chat and room messages have sender and address, and get a growing answer', async () => {
  const ann = await person('ann')
  await ann.join(room, 'ann')
  await ann.showAddresses(room)
  const daemon = await start(instance({ rooms: [room], nick: 'svc' }))
  await daemon.status('ready')
  await ann.say('bot@localhost', 'how many?')
  await ann.sayIn(room, 'good morning')
  await ann.sayIn(room, 'svc: and here?')
  const [direct, morning, asked] = [
    await daemon.heard('how many?'),
    await daemon.heard('good morning'),
    await daemon.heard('and here?'),
  ]
  assert.equal(direct.sender, { id: 'ann@localhost', username: 'ann@localhost', authenticated: true })
  assert.ok(direct.addressed)
  assert.match(direct.idempotency_key, /^mam:/)
  assert.not(morning.addressed)
  assert.ok(asked.addressed)
  assert.is(asked.group_id, room)
  assert.is(asked.sender.id, 'ann@localhost')
  assert.ok(asked.sender.authenticated, 'the room shows addresses')

  const first = daemon.delivery('bri_1', { peer_id: 'ann@localhost' }, 'sev', { event: 'start' })
  const sent = await daemon.deliver(first)
  assert.equal(sent, { status: 'delivered', remote_message_id: first.nonce })
  const grown = { ...first, event: 'final', text: 'seven <&> of them', remote_message_id: first.nonce } as const
  assert.equal(await daemon.deliver(grown), sent)
  const corrected = await ann.hears(got => got.replaces === first.nonce, 'the correction')
  assert.is(corrected.body, 'seven <&> of them')

  const inRoom = daemon.delivery('bri_1', { group_id: room }, 'yes, here')
  assert.equal(await daemon.deliver(inRoom), { status: 'delivered', remote_message_id: inRoom.nonce })
  await ann.hears(got => got.body === 'yes, here')
  assert.not(
    daemon.events.some(({ text }) => text === 'yes, here'),
    'its own reflection',
  )

  for (const delivery of [first, grown, inRoom])
    assert.is((await daemon.settle(delivery, Date.now())).outcome, 'delivered')
  for (const target of [{ peer_id: 'ann@localhost' }, { group_id: room }])
    assert.equal(await daemon.settle(daemon.delivery('bri_1', target, 'never sent'), Date.now()), { outcome: 'absent' })
})

test('a check receives no offline messages', async () => {
  const ann = await person('ann')
  await ann.say('gus@localhost', 'kept for you')
  await ann.settled()
  const gus = instance({ jid: 'gus@localhost' })
  const check = ScriptedDaemon.inProcess({ ...manifest, open: (one, host) => openXmpp(one, host, hasty) })
  check.purpose = 'control'
  await check.initialize([gus])
  await check.status('ready')
  const { checks } = (await check.request('bridges/verify', { bridge_instance_id: 'bri_1' })) as {
    checks: { check: string; status: string }[]
  }
  assert.is(checks.find(({ check }) => check === 'xmpp.connected')?.status, 'pass')
  await check.shutdown()
  assert.equal(check.events, [])
  const daemon = await start(gus)
  await daemon.heard('kept for you')
})

test('room history and forged delays start no turn', async () => {
  const ann = await person('ann')
  const place = 'past@rooms.localhost'
  await ann.join(place, 'ann')
  await ann.sayIn(place, 'svc: before you came')
  await ann.settled()
  const daemon = await start(instance({ rooms: [place], nick: 'svc' }))
  await daemon.status('ready')
  const delay = xml('delay', { xmlns: 'urn:xmpp:delay', stamp: '2020-01-01T00:00:00Z' })
  await ann.sayIn(place, 'svc: replayed', delay)
  await ann.sayIn(place, 'svc: now')
  await daemon.heard('now')
  assert.equal(
    daemon.events.map(({ text }) => text),
    ['now'],
  )
})

test('a nick in a semi-anonymous room is no identity; a private message is answered there', async () => {
  const ann = await person('ann')
  const place = 'hidden@rooms.localhost'
  await ann.join(place, 'Ann')
  const daemon = await start(instance({ rooms: [place], nick: 'svc' }))
  await daemon.status('ready')
  await ann.sayIn(place, '@svc who am I?')
  const { sender, peer_id: peer } = await daemon.heard('who am I?')
  assert.equal(sender, { id: `${place}/Ann`, username: 'Ann', display_name: 'Ann', authenticated: false })
  assert.is(peer, `${place}/Ann`)
  await ann.say(`${place}/svc`, 'in private')
  const secret = await daemon.heard('in private')
  assert.equal([secret.peer_id, secret.group_id, secret.addressed], [`${place}/Ann`, undefined, true])
  assert.not(secret.sender.authenticated)
  assert.is((await daemon.say('bri_1', { peer_id: `${place}/Ann` }, 'for you alone')).status, 'delivered')
  assert.is((await ann.hears(got => got.body === 'for you alone')).type, 'chat')
})

test('offline messages arrive once, and a repetition has the same key', async () => {
  const ann = await person('ann')
  await ann.say('bot@localhost', 'are you there?')
  await ann.settled()
  const first = await start(instance({ catch_up_minutes: 10 }))
  const heard = await first.heard('are you there?')
  await ann.say('bot@localhost', 'one more')
  await first.heard('one more')
  assert.is(first.events.filter(({ text }) => text === 'are you there?').length, 1, 'offline storage and archive')
  await first.shutdown()
  const second = await start(instance({ catch_up_minutes: 10 }))
  const again = await second.heard('are you there?')
  assert.is(again.idempotency_key, heard.idempotency_key)
  assert.ok(heard.sender.authenticated)
  await second.shutdown()
})

test('the archive of a room identifies members by occupant id; own messages and forged addresses are ignored', async () => {
  const [ann, ben] = [await person('ann'), await person('ben')]
  const place = 'archived@rooms.localhost'
  await ann.join(place, 'Ann')
  await ann.showAddresses(place)
  await ben.join(place, 'Ben')
  const with10 = { rooms: [place], nick: 'svc', catch_up_minutes: 10 }
  const before = await start(instance(with10))
  await before.status('ready')
  assert.is((await before.say('bri_1', { group_id: place }, 'svc: own words')).status, 'delivered')
  await before.shutdown()
  const forged = [
    xml(
      'x',
      { xmlns: 'http://jabber.org/protocol/muc#user' },
      xml('item', { jid: 'ann@localhost', affiliation: 'owner', role: 'moderator' }),
    ),
    xml('occupant-id', { xmlns: 'urn:xmpp:occupant-id:0', id: 'of somebody else' }),
  ]
  await ann.sayIn(place, 'svc: while you were away')
  await ben.sayIn(place, 'svc: as somebody else', ...forged)
  await ben.rename(place, 'Ann2')
  await ben.sayIn(place, 'svc: under another nick')
  await ann.settled()
  const ghost = await person('gus')
  await ghost.join(place, 'Gus')
  await ghost.sayIn(place, 'svc: and gone')
  await ghost.leave()
  await ann.settled()
  const after = await start(instance(with10))
  const sender = async (text: string) => {
    const { sender: who } = await after.heard(text)
    return [who.id, who.authenticated, who.username]
  }
  assert.equal(await sender('while you were away'), ['ann@localhost', true, 'Ann'])
  assert.equal(await sender('as somebody else'), ['ben@localhost', true, 'Ben'])
  assert.equal(await sender('under another nick'), ['ben@localhost', true, 'Ann2'])
  assert.equal(await sender('and gone'), [`${place}/Gus`, false, 'Gus'], 'nobody says any more who that was')
  assert.not(after.events.some(({ text = '' }) => text.includes('own words')))
})

test('a text is corrected with a reference to its message', async () => {
  const ann = await person('ann')
  const daemon = await start(instance())
  await daemon.status('ready')
  const id = await ann.say('bot@localhost', 'helo')
  await ann.say('bot@localhost', 'hello', 'second', xml('replace', { xmlns: 'urn:xmpp:message-correct:0', id }))
  const [wrong, right] = [await daemon.heard('helo'), await daemon.heard('hello')]
  assert.equal([wrong.family, wrong.message_id, right.family, right.message_id], ['message', id, 'edit', id])
})

test('a typing notification is no message', async () => {
  const ann = await person('ann')
  const daemon = await start(instance())
  await daemon.status('ready')
  await ann.say('bot@localhost', 'are you there?')
  await daemon.heard('are you there?')
  await daemon.say('bri_1', { peer_id: 'ann@localhost' }, '', { event: 'typing' })
  await daemon.say('bri_1', { peer_id: 'ann@localhost' }, 'I am')
  await ann.hears(got => got.body === 'I am')
  assert.equal(
    ann.composing.map(from => from.split('/')[0]),
    ['bot@localhost'],
  )
  assert.is(ann.got.length, 1)
})

test('a message refused by the server is not sent, with the kind of failure', async () => {
  const ann = await person('ann')
  const place = 'quiet@rooms.localhost'
  await ann.join(place, 'ann')
  await ann.configure(place, { 'muc#roomconfig_moderatedroom': '1' })
  const daemon = await start(instance({ rooms: [place] }))
  await daemon.status('ready')
  const refused: [object, string][] = [
    [{ peer_id: 'nobody@localhost' }, 'unknown_destination'],
    [{ peer_id: 'not a jid' }, 'unknown_destination'],
    [{ group_id: 'other@rooms.localhost' }, 'unknown_destination'],
    [{ group_id: place }, 'permission_denied'],
  ]
  for (const [target, kind] of refused) {
    const result = await daemon.say('bri_1', target, 'hello')
    assert.equal(
      result.status === 'not_sent' ? [result.permanent, result.kind] : result,
      [true, kind],
      JSON.stringify(target),
    )
  }
})

test('a text with characters invalid in XML keeps the connection, and a long multibyte one is whole', async () => {
  const ann = await person('ann')
  const daemon = await start(instance())
  await daemon.status('ready')
  const text = 'a\0b\x0bc\ud800d\uffff]]>&<e>'
  assert.is((await daemon.say('bri_1', { peer_id: 'ann@localhost' }, text)).status, 'delivered')
  assert.is((await ann.hears(() => true)).body, 'abcd]]>&<e>')
  const long = 'ä😀ö'.repeat(20_000)
  await ann.say('bot@localhost', long)
  const heard = await daemon.until(() => daemon.events.find(({ text = '' }) => text.length > 1000), 'the long text')
  assert.ok(heard.text === long, 'no character is broken between two packets')
  assert.is(daemon.reports.length, 2)
})

test('a refused password needs the operator; a server without encryption never gets it', async () => {
  const wrong = await start(instance({}, { password: 'wrong-password' }))
  const { reason } = await wrong.status('auth_required')
  assert.is(reason, 'auth_failed')
  assert.not.match(JSON.stringify(wrong.reports), 'wrong-password')
  await wrong.shutdown()
  const open = await start(instance({ tls: 'starttls' }))
  const report = await open.status('error')
  assert.is(report.reason, 'tenant_config_invalid')
  assert.match(report.message ?? '', 'offers no encryption')
  await open.shutdown()
  for (const more of [{ jid: 'bot' }, { jid: 'b<o>t@localhost' }, { rooms: ['x'] }, { tls: 'maybe' }, { nick: '' }]) {
    const daemon = await start(instance(more))
    assert.is((await daemon.status('error')).reason, 'tenant_config_invalid', JSON.stringify(more))
  }
})

test('a taken nick and a kick from a room are handled', async () => {
  const ann = await person('ann')
  const place = 'busy@rooms.localhost'
  await ann.join(place, 'svc')
  const daemon = await start(instance({ rooms: [place], nick: 'svc' }))
  await daemon.status('ready')
  await ann.sayIn(place, 'svc_: you')
  assert.ok((await daemon.heard('you')).addressed)
  const before = daemon.reports.length
  await ann.kick(place, 'svc_')
  assert.match((await daemon.status('degraded', before)).message ?? '', /kicked/)
  await daemon.status('ready', before)
  assert.equal(await daemon.targets('bri_1'), [
    { group_id: place, display_name: 'busy', target_type: 'channel', qualifier: 'rooms.localhost' },
  ])
  const checks = await daemon.verify('bri_1')
  assert.ok(
    checks.every(({ status }) => status === 'pass'),
    JSON.stringify(checks),
  )
})

test('an unrequested or foreign archive result is no message', async () => {
  const ann = await person('ann')
  const daemon = await start(instance())
  await daemon.status('ready')
  const forged = xml('message', { from: 'ben@localhost', type: 'chat' }, xml('body', {}, 'forged'))
  const result = xml(
    'result',
    { xmlns: 'urn:xmpp:mam:2', queryid: 'x', id: '1' },
    xml('forwarded', { xmlns: 'urn:xmpp:forward:0' }, forged),
  )
  await ann.say('bot@localhost', 'carries one', 'm1', result)
  const carbon = xml(
    'received',
    { xmlns: 'urn:xmpp:carbons:2' },
    xml('forwarded', { xmlns: 'urn:xmpp:forward:0' }, forged),
  )
  await ann.say('bot@localhost', 'hello', 'm2', carbon)
  const heard = await daemon.heard('hello')
  assert.is(heard.sender.id, 'ann@localhost')
  assert.not(daemon.events.some(({ text }) => text === 'forged'))
})

test('a restarted server degrades the instance, and no message of the downtime is lost', async () => {
  const daemon = await start(instance({ catch_up_minutes: 10 }))
  await daemon.status('ready')
  await server.stop()
  assert.is((await daemon.status('degraded')).reason, 'provider_timeout')
  const later = await daemon.say('bri_1', { peer_id: 'ann@localhost' }, 'now?')
  assert.equal([later.status, 'permanent' in later && later.permanent], ['not_sent', false])
  const before = daemon.reports.length
  await server.start()
  const ann = await person('ann')
  await ann.say('bot@localhost', 'are you back?')
  await daemon.status('ready', before)
  await daemon.heard('are you back?')
  assert.is((await daemon.say('bri_1', { peer_id: 'ann@localhost' }, 'yes')).status, 'delivered')
  await ann.hears(got => got.body === 'yes')
  assert.is(daemon.events.filter(({ text }) => text === 'are you back?').length, 1)
})

test('a silent server is noticed', async () => {
  const daemon = await start(instance({ ping_seconds: 1 }))
  await daemon.status('ready')
  server.pause()
  await daemon.status('degraded')
  const before = daemon.reports.length
  server.resume()
  await daemon.status('ready', before)
  assert.equal(await daemon.health(), { healthy: true })
})

test.run()
