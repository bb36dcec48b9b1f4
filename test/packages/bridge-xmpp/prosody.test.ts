import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { openXmpp } from '../../../packages/bridge-xmpp/src/bridge.js'
import { manifest } from '../../../packages/bridge-xmpp/src/manifest.js'
import { Prosody } from '../../harness/chat-servers.js'
import { managed, ScriptedDaemon } from '../bridge-kit/scripted-daemon.js'
import { Person } from './person.js'

const users = { bot: 'secret', ann: 'secret', ben: 'secret' }
const room = 'ops@rooms.localhost'
let server: Prosody
const instance = (more: object = {}, secrets: Record<string, string> = { password: 'secret' }) =>
  managed(
    'bri_1',
    { jid: 'bot@localhost', server: '127.0.0.1', port: server.port, tls: 'none', catch_up_minutes: 0, ...more },
    secrets,
  )
const start = async (...instances: ReturnType<typeof managed>[]) => {
  const daemon = ScriptedDaemon.inProcess({ ...manifest, open: openXmpp })
  await daemon.initialize(instances)
  return daemon
}

test.before(async () => {
  server = await Prosody.start({ users })
})
test.after(() => server.remove())

test('a chat and a room: who sent it, what is addressed, an answer that grows', async () => {
  const ann = await Person.login(server.port, 'ann', 'secret')
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
  await ann.leave()
  await daemon.shutdown()
})

test.run()
