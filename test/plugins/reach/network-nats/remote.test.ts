import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { NatsServer } from '../../../fixtures/nats-server.js'
import { type Half, openRealm } from '../../../fixtures/network-halves.js'

let server: NatsServer
let halves: Half[] = []
test.before(async () => {
  server = await NatsServer.start()
})
test.after.each(async () => {
  for (const half of halves) await half.close()
  halves = []
})
test.after(() => server.close())

const open = async (...names: string[]) => {
  halves = await openRealm(server.url, names)
  return halves as [Half, Half, Half]
}
const ids = (half: Half) => half.received().map(({ envelope }) => envelope.id)

test('a message reaches the other daemon once, in the order of its commits, with its peers', async () => {
  const [ada, bob] = await open('ada', 'bob')
  const said: string[] = []
  for (let i = 0; i < 5; i++) said.push(await ada.say(`message ${i}`))
  await bob.got(...said)
  assert.equal(ids(bob), said)
  const [first] = bob.received()
  assert.is(first?.daemon, 'ada')
  assert.is(first?.envelope.ts !== undefined && first.envelope.expires_at, (first?.envelope.ts ?? 0) + 24 * 60 * 60)
  assert.equal(bob.remotePeers.get('team/ada'), [{ peerId: 'ada.one', name: 'ada' }])
  const answer = await bob.say('heard')
  await ada.got(answer)
  assert.equal(ids(ada), [answer])
})

test.run()
