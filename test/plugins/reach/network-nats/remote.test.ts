import { readFileSync } from 'node:fs'
import path from 'node:path'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { identityOf, newSecret, signed } from '../../../../plugins/reach/network-nats/proof.js'
import { NatsServer } from '../../../fixtures/nats-server.js'
import { type Half, openHalf, openRealm } from '../../../fixtures/network-halves.js'
import { freePort } from '../../../harness/free-port.js'
import { proxyTo } from '../../../proofs/network/ways.js'

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

test('a message reaches the other daemon once, in commit order, with its peers', async () => {
  const [ada, bob] = await open('ada', 'bob')
  const messages: string[] = []
  for (let i = 0; i < 5; i++) messages.push(await ada.say(`message ${i}`))
  await bob.got(...messages)
  assert.equal(ids(bob), messages)
  const [first] = bob.received()
  assert.is(first?.daemon, 'ada')
  assert.is(first?.envelope.ts !== undefined && first.envelope.expires_at, (first?.envelope.ts ?? 0) + 24 * 60 * 60)
  assert.equal(bob.remotePeers.get('team/ada'), [{ peerId: 'ada.one', name: 'ada' }])
  const answer = await bob.say('heard')
  await ada.got(answer)
  assert.equal(ids(ada), [answer])
})

const STREAM = 'svc_test_messages'

/** Acts as an operator of the server, or as something that has access to it. */
async function atServer<T>(work: (tools: Tools) => Promise<T>): Promise<T> {
  const connection = await connect({ servers: server.url.slice('nats://'.length) })
  try {
    const manager = await jetstreamManager(connection)
    return await work({ manager, client: jetstream(connection) })
  } finally {
    await connection.close()
  }
}
type Tools = {
  readonly manager: Awaited<ReturnType<typeof jetstreamManager>>
  readonly client: ReturnType<typeof jetstream>
}

/** Puts an envelope into the stream as if a daemon had sent it. */
const put = (daemon: string, content: unknown) =>
  atServer(({ client }) => client.publish(`svc.test.m.team.${daemon}`, JSON.stringify(content)))

const seconds = () => Math.floor(Date.now() / 1000)
const envelope = (id: string, more: Record<string, unknown> = {}) => ({
  ...{ protocol: 'svc-network/v1', id, channel: 'team', kind: 'say', surface: 'thread', thread_id: 'thread_one' },
  ...{ from: 'eve.one', ts: seconds(), expires_at: seconds() + 3600, body: { text: 'hello' } },
  ...more,
})
const proof = () => ({ realm: 'test', at: seconds(), attempt: 0 })

/** What the stream holds of a daemon. */
const stored = (id: string) =>
  atServer(async ({ client, manager }) => {
    const { state } = await manager.streams.info(STREAM)
    const stream = await client.streams.get(STREAM)
    for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
      const message = await stream.getMessage({ seq })
      const content = message?.json<Record<string, unknown>>()
      if (content?.id === id) return content
    }
    throw new Error(`the stream has no ${id}`)
  })

test('messages sent during an outage of the server are published afterwards', async () => {
  const [ada, bob] = await open('ada', 'bob')
  const first = await ada.say('before')
  await bob.got(first)
  await server.stop('SIGKILL')
  const waiting = [await ada.say('one'), await ada.say('two')]
  await server.start()
  await bob.got(...waiting)
  assert.equal(ids(bob), [first, ...waiting])
})

test('messages sent during an outage of the receiver wait for it', async () => {
  const [ada, bob] = await open('ada', 'bob')
  const waiting: string[] = []
  await bob.restart(async () => {
    waiting.push(await ada.say('one'), await ada.say('two'))
  })
  await bob.got(...waiting)
  assert.equal(ids(bob), waiting)
})

test('a server with lost data gets its messages again, and no receiver gets one twice', async () => {
  const [ada, bob] = await open('ada', 'bob')
  const before = await ada.say('before')
  await bob.got(before)
  let lost = ''
  await bob.restart(async () => {
    lost = await ada.say('the server has it, bob has not')
    const startedAt = performance.now()
    while (performance.now() - startedAt < 60_000 && !(await stored(lost).catch(() => undefined)));
    await server.stop('SIGKILL')
    await server.start(true)
  })
  await bob.got(lost)
  const after = await ada.say('after')
  await bob.got(after)
  assert.equal(ids(bob), [before, lost, after])
})

test('a connection that breaks after each message is retried without growing back-off', async () => {
  const CUTS = 6
  const way = await proxyTo(server.port)
  halves = await openRealm(way.url, ['ada', 'bob'])
  const [ada, bob] = halves as [Half, Half]
  for (let n = 0; n <= CUTS; n++) {
    await bob.got(await ada.say(`message ${n}`))
    ada.pauses.length = 0
    if (n === CUTS) break
    await way.cut(true)
    await way.cut(false)
    await ada.stateIs('away')
  }
  await way.close()
  await ada.stateIs('away')
  const longest = Math.max(...ada.pauses.filter(ms => ms <= 30_000))
  assert.ok(longest <= 1000, `${longest} ms`)
})

test('a consumer removed by hand is created again', async () => {
  const [ada, bob] = await open('ada', 'bob')
  const before = await ada.say('before')
  await bob.got(before)
  const { daemon } = await bob.identity()
  await atServer(({ manager }) => manager.consumers.delete(STREAM, `${daemon}_team`))
  const after = await ada.say('after')
  await bob.got(after)
  assert.equal(ids(bob), [before, after])
})

test('a daemon recognizes its own redelivered messages, also after a restart', async () => {
  const [ada, bob] = await open('ada', 'bob')
  const messages = [await ada.say('one'), await ada.say('two')]
  await bob.got(...messages)
  const { daemon } = await ada.identity()
  await ada.restart(() => atServer(({ manager }) => manager.consumers.delete(STREAM, `${daemon}_team`)))
  const answer = await bob.say('heard')
  await ada.got(answer)
  const { refusals } = await ada.status()
  assert.equal([ids(ada), refusals.filter((one: { peer: string }) => one.peer === 'self')], [[answer], []])
  const next = await ada.say('three')
  await bob.got(next)
  assert.equal(ids(bob), [...messages, next])
})

test('a stream removed by hand is created again', async () => {
  const [ada, bob] = await open('ada', 'bob')
  const before = await ada.say('before')
  await bob.got(before)
  await atServer(({ manager }) => manager.streams.delete(STREAM))
  const after = await ada.say('after')
  await bob.got(after)
  assert.equal(ids(bob), [before, after])
})

test('a modified envelope, or one with an unknown key or version or expired, is refused with its daemon', async () => {
  const [ada, bob] = await open('ada', 'bob')
  const { daemon } = await ada.identity()
  const first = await ada.say('pay 1')
  await bob.got(first)
  const sent = await stored(first)
  await put(daemon, { ...sent, id: 'msg_forged', body: { text: 'pay 1000' } })
  assert.match((await bob.refused('ada', 'verification_failed')).message, /signature/)
  const stranger = identityOf(newSecret())
  await put(stranger.daemon, signed(envelope('msg_unknown'), stranger, proof()))
  await bob.refused(stranger.daemon, 'verification_failed')
  await put(daemon, signed(envelope('msg_other'), stranger, proof()))
  const old = signed(envelope('msg_version'), stranger, proof())
  await put(daemon, { ...old, proof: { ...(old.proof as object), version: 'svc-proof/v9' } })
  await bob.refused('ada', 'unsupported_profile')
  await put(daemon, 'no object')
  await bob.refused('ada', 'malformed')
  const last = await ada.say('expired as soon as it was said', { expires_at: seconds() - 1 })
  const good = await ada.say('good')
  await bob.got(good)
  assert.equal(ids(bob), [first, good], `without ${last}`)
  const { items } = (await bob.kernel.request('GET', '/api/doctor')).body
  const named = items.filter((item: { code: string }) => item.code === 'network_remote_refused')
  // The command line shows messages without their titles.
  assert.ok(named.some((item: { message: string }) => item.message.includes('Messages of ada are refused')))
})

test('a replayed envelope is not received twice', async () => {
  const [ada, bob] = await open('ada', 'bob')
  const { daemon } = await ada.identity()
  const first = await ada.say('once')
  await bob.got(first)
  await put(daemon, await stored(first))
  const after = await ada.say('after')
  await bob.got(after)
  assert.equal(ids(bob), [first, after])
})

test('a revoked key is refused with the name of its daemon', async () => {
  const [ada, bob] = await open('ada', 'bob')
  const first = await ada.say('first')
  await bob.got(first)
  await bob.ask('DELETE', '/peers/ada')
  await ada.say('second')
  assert.match((await bob.refused('ada', 'verification_failed')).message, /revoked/)
  assert.equal(ids(bob), [first])
  assert.equal(bob.remotePeers.get('team/ada'), [])
})

test('another daemon with the same key is noticed', async () => {
  const [ada, bob] = await open('ada', 'bob')
  const { daemon } = await ada.identity()
  const secret = ada.secret
  await put(daemon, signed(envelope('msg_twin', { from: 'ada.one' }), identityOf(secret), proof()))
  assert.match((await ada.refused('self', 'verification_failed')).message, /another daemon uses the key/)
  await bob.got('msg_twin')
})

test('a clock that is off by an hour loses no message, and is shown', async () => {
  const [ada, bob] = await open('ada', 'bob')
  const { daemon } = await ada.identity()
  const identity = identityOf(ada.secret)
  const late = seconds() - 3600
  const more = { from: 'ada.one', ts: late, expires_at: late + 24 * 3600 }
  await put(daemon, signed(envelope('msg_late', more), identity, { ...proof(), at: late }))
  await bob.got('msg_late')
  const [peer] = (await bob.status()).peers
  assert.is(peer.clock_is_off, true)
})

test('a message refused by the server is listed and blocks no other', async () => {
  const small = await NatsServer.start(['max_payload: 4096'])
  try {
    halves = await openRealm(small.url, ['ada', 'bob'])
    const [ada, bob] = halves as [Half, Half]
    await ada.say('x'.repeat(4096))
    const after = await ada.say('after')
    await bob.got(after)
    assert.equal(ids(bob), [after])
    assert.match((await ada.refused('self', 'malformed')).message, /4096/)
  } finally {
    for (const half of halves) await half.close()
    halves = []
    await small.close()
  }
})

test('a full server is waited for, and nothing is lost', async () => {
  const [ada, bob] = await open('ada', 'bob')
  const first = await ada.say('first')
  await bob.got(first)
  const limit = (max_msgs: number) => atServer(({ manager }) => manager.streams.update(STREAM, { max_msgs }))
  await limit(1)
  const waiting = [await ada.say('one'), await ada.say('two')]
  await ada.stateIs('full')
  const { items } = (await ada.kernel.request('GET', '/api/doctor')).body
  assert.ok(items.some((item: { code: string }) => item.code === 'network_remote_full'))
  await limit(-1)
  await bob.got(...waiting)
  assert.equal(ids(bob), [first, ...waiting])
})

test('a daemon needs only the permissions of docs/scale.md, and logs in with a vault secret', async () => {
  const secret = newSecret()
  const { daemon } = identityOf(secret)
  const document = readFileSync(path.join(import.meta.dirname, '../../../../docs/scale.md'), 'utf8')
  const [, permissions = ''] = /^permissions (\{.*?^\})/ms.exec(document) ?? []
  const own = permissions.replaceAll('acme', 'test').replaceAll('0123456789abcdef', daemon)
  const users = `users: [{ user: root, password: "root-password" }, { user: svc, password: "svc-password", permissions: ${own} }]`
  const guarded = await NatsServer.start([`authorization { ${users} }`])
  try {
    const [ada, bob] = [await openHalf('ada'), await openHalf('bob', { secret })]
    halves = [ada, bob]
    for (const [half, other, login] of [
      [ada, bob, 'root:root-password'],
      [bob, ada, 'svc:svc-password'],
    ] as const) {
      await half.trust(other)
      await half.share()
      await half.join(guarded.url, { credentials_ref: await half.hide('login', login) })
      await half.connected()
    }
    const [there, back] = [await ada.say('there'), await bob.say('back')]
    await Promise.all([bob.got(there), ada.got(back)])
    assert.not.match(JSON.stringify(await bob.status()), /svc-password/)
  } finally {
    for (const half of halves) await half.close()
    halves = []
    await guarded.close()
  }
})

test('a join replies with the state of its own connection', async () => {
  const half = await openHalf('ada')
  halves = [half]
  const { remote: lost } = await half.join(`nats://127.0.0.1:${await freePort()}`)
  assert.is(lost.state, 'away')
  assert.match(lost.error, /no server listens there/)
  const { remote: found } = await half.join(server.url)
  assert.equal([found.state, found.error], ['connected', undefined])
})

test('a key is pinned only with its fingerprint, once, and never the own key', async () => {
  const [ada, bob] = await open('ada', 'bob')
  const { public_key, fingerprint } = await bob.identity()
  const add = async (body: object) => (await ada.kernel.request('POST', '/api/network/remote/peers', body)).body.code
  assert.is(await add({ name: 'bob-2', public_key, fingerprint: 'SHA256:other' }), 'remote_fingerprint_mismatch')
  assert.is(await add({ name: 'bob-2', public_key, fingerprint }), 'remote_peer_exists')
  assert.is(await add({ name: 'bob-2', public_key: 'ed25519:short', fingerprint }), 'remote_key_invalid')
  assert.is(await add({ name: 'self', ...pick(await ada.identity()) }), 'remote_key_invalid')
})
const pick = ({ public_key, fingerprint }: { public_key: string; fingerprint: string }) => ({ public_key, fingerprint })

test.run()
