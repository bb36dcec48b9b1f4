import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { openIrc } from '../../../packages/bridge-irc/src/bridge.js'
import { manifest } from '../../../packages/bridge-irc/src/manifest.js'
import { Ngircd } from '../../harness/chat-servers.js'
import { managed, ScriptedDaemon } from '../bridge-kit/scripted-daemon.js'
import { Person } from './person.js'

let server: Ngircd
const config = (more: object = {}) => ({
  server: '127.0.0.1',
  port: server.port,
  tls: false,
  nick: 'svcbot',
  channels: ['#ops'],
  flood_burst: 50,
  ...more,
})
const start = async (...instances: ReturnType<typeof managed>[]) => {
  const daemon = ScriptedDaemon.inProcess({ ...manifest, open: openIrc })
  await daemon.initialize(instances)
  return daemon
}

test.before(async () => {
  server = await Ngircd.start()
})
test.after(() => server.remove())

test('a channel and a query: what is addressed, who sent it, and the answers', async () => {
  const daemon = await start(managed('bri_1', config()))
  await daemon.status('ready')
  const ann = await Person.join(server.port, 'ann', '#ops')
  ann.say('#ops', 'good morning')
  ann.say('#ops', 'svcbot: how \x02many\x02 \x0304files\x03?')
  ann.say('svcbot', 'and here?')
  const [morning, question, query] = [
    await daemon.heard('good morning'),
    await daemon.heard('how many files?'),
    await daemon.heard('and here?'),
  ]
  assert.not(morning.addressed)
  assert.ok(question.addressed)
  assert.is(question.group_id, '#ops')
  assert.is(question.peer_id, 'ann')
  assert.not(question.sender.authenticated, 'a nick is no identity')
  assert.match(question.sender.id, /^ann!~?ann@/)
  assert.ok(query.addressed)
  assert.is(query.group_id, undefined)
  assert.is(new Set([morning, question, query].map(event => event.idempotency_key)).size, 3)
  assert.equal(await daemon.say('bri_1', { group_id: '#ops' }, 'seven'), { status: 'delivered' })
  assert.equal(await daemon.say('bri_1', { peer_id: 'ann' }, 'yes, here'), { status: 'delivered' })
  await ann.hears(line => line === 'yes, here')
  assert.equal(
    ann.lines.map(({ target, message }) => `${target} ${message}`),
    ['#ops seven', 'ann yes, here'],
  )
  await ann.leave()
  await daemon.shutdown()
})

test.run()
