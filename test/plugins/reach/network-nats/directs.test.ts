import { jetstream } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { configuration, files, tasks, vault } from '../../../../plugins/index.js'
import networkNats from '../../../../plugins/reach/network-nats/index.js'
import { identityOf, newSecret, signed } from '../../../../plugins/reach/network-nats/proof.js'
import { NatsServer } from '../../../fixtures/nats-server.js'
import { eventually } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'
import { openScene } from '../network/scene.js'

const REALM = 'test'
const NAMES = ['ada', 'bob', 'cid'] as const
const remote = '/api/network/remote'

/** A daemon with the network and the transport, in whose channel one session of its own takes part. */
async function openDaemon(name: string) {
  const scene = await openScene({ agents: [name], plugins: [configuration, files, tasks, vault, networkNats] })
  const ask = async (method: string, path: string, body?: unknown) => {
    const reply = await scene.kernel.request(method, path, body)
    assert.ok(reply.status < 300, `${method} ${path}: ${reply.status} ${JSON.stringify(reply.body)}`)
    return reply.body
  }
  const secret = newSecret()
  await ask('PUT', '/api/vault/secrets', { ref: 'vault:network/identity', secret_value: secret })
  const peers = async (): Promise<Reply[]> => (await scene.request('GET', '/peers')).body.peers
  return {
    ...scene,
    name,
    ask,
    identity: identityOf(secret),
    peers,
    own: scene.peer(name),
    knows: (peerId: string) =>
      eventually(async () => (await peers()).some(({ peer_id: id }) => id === peerId), `${name} to know ${peerId}`),
    /** The direct room of its session with a peer of another daemon. */
    openDirect: (peerId: string) =>
      scene.request('POST', '/channels/team/directs/resolve', {
        session_id: scene.peer(name).session_id,
        peer_id: peerId,
      }),
    directs: async (): Promise<Reply[]> => (await scene.request('GET', '/channels/team/directs')).body.directs,
    messages: async (room: string): Promise<Reply[]> =>
      (await scene.request('GET', `/channels/team/directs/${room}/messages`)).body.messages,
    refused: (peer: string, reason: string) =>
      eventually(async () => {
        const { refusals } = (await ask('GET', remote)).remote
        return refusals.find((one: Reply) => one.peer === peer && one.reason_code === reason)
      }, `${name} to refuse ${peer}: ${reason}`),
  }
}
type Daemon = Awaited<ReturnType<typeof openDaemon>>

let server: NatsServer
let daemons: Daemon[] = []
test.before(async () => {
  server = await NatsServer.start()
  daemons = await Promise.all(NAMES.map(openDaemon))
  for (const daemon of daemons) {
    for (const { name, identity } of daemons)
      if (name !== daemon.name)
        await daemon.ask('POST', `${remote}/peers`, {
          name,
          public_key: identity.publicKey,
          fingerprint: identity.fingerprint,
        })
    await daemon.ask('POST', `${remote}/channels`, { channel: 'team', workspace: daemon.workspaceId })
    await daemon.ask('POST', `${remote}/join`, { url: server.url, realm: REALM })
  }
  for (const daemon of daemons) for (const { own } of daemons) await daemon.knows(own.peer_id)
})
test.after(async () => {
  for (const daemon of daemons) await daemon.close()
  await server.close()
})

const all = () => daemons as [Daemon, Daemon, Daemon]
const seconds = () => Math.floor(Date.now() / 1000)

/** Puts an envelope into the stream that a daemon has signed. */
async function put(subject: string, { identity }: Daemon, content: Record<string, unknown>): Promise<void> {
  const connection = await connect({ servers: server.url.slice('nats://'.length) })
  try {
    const envelope = {
      ...{ protocol: 'svc-network/v1', channel: 'team', kind: 'say', ts: seconds(), expires_at: seconds() + 3600 },
      ...{ body: { text: 'hello' }, ...content },
    }
    const proof = { realm: REALM, at: seconds(), attempt: 0 }
    await jetstream(connection).publish(`svc.${REALM}.${subject}`, JSON.stringify(signed(envelope, identity, proof)))
  } finally {
    await connection.close()
  }
}

test('a missing channel cannot be shared', async () => {
  const [ada] = daemons as [Daemon]
  const body = { channel: 'nowhere', workspace: ada.workspaceId }
  const { status, body: refusal } = await ada.kernel.request('POST', `${remote}/channels`, body)
  assert.equal([status, refusal.code], [404, 'channel_not_found'])
})

test('a direct room with a peer of another daemon is one conversation, hidden from a third daemon', async () => {
  const [ada, bob, cid] = all()
  const { status, body } = await ada.openDirect(bob.own.peer_id)
  assert.is(status, 200, JSON.stringify(body))
  const sent = await ada.post('ada', { direct_id: body.direct.direct_id, body: { text: 'say between us' } })
  assert.is(sent.status, 200, JSON.stringify(sent.body))
  const [there] = await eventually(async () => {
    const found = await bob.directs()
    return found.length > 0 && found
  }, 'the room is there')
  assert.is.not(there.direct_id, body.direct.direct_id, 'the id is that of the own workspace')
  assert.equal([there.session_a, there.session_b].sort(), [ada.own.session_id, bob.own.session_id].sort())
  await bob.settled('bob', 1)
  const answer = await bob.post('bob', { direct_id: there.direct_id, body: { text: 'say heard' } })
  assert.is(answer.status, 200, JSON.stringify(answer.body))
  const read = async (daemon: Daemon, room: string) =>
    (await daemon.messages(room)).map(one => [one.message_id, one.peer_from, one.direction])
  await eventually(async () => (await ada.messages(body.direct.direct_id)).length === 2, 'the answer is there')
  const [asked, heard] = [sent.body.message.id, answer.body.message.id]
  assert.equal(await read(ada, body.direct.direct_id), [
    [asked, ada.own.peer_id, 'sent'],
    [heard, bob.own.peer_id, 'received'],
  ])
  assert.equal(await read(bob, there.direct_id), [
    [asked, ada.own.peer_id, 'received'],
    [heard, bob.own.peer_id, 'sent'],
  ])
  const message = await ada.say('ada', 'say to all')
  const inThread = `/channels/team/threads/${message.thread_id}/messages`
  await eventually(async () => (await cid.request('GET', inThread)).status === 200, 'the thread is there')
  assert.equal(await cid.directs(), [])
  const { remote: state } = await cid.ask('GET', remote)
  assert.equal(state.refusals, [], 'it was not even delivered')
})

test('the direct room of two sessions of one daemon is not published', async () => {
  const [ada, bob] = all()
  const other = await ada.ask('POST', '/api/sessions', {
    ...{ workspace: ada.workspaceId, agent_name: 'ada' },
    network_participation: { mode: 'live', channel_strategy: 'named', channel_id: 'team' },
  })
  const peerId = `ada.${other.session.id}`
  await bob.knows(peerId)
  const { body } = await ada.openDirect(peerId)
  await ada.post('ada', { direct_id: body.direct.direct_id, body: { text: 'say within' } })
  const after = await ada.say('ada', 'say behind it')
  const url = `/channels/team/threads/${after.thread_id}/messages`
  await eventually(async () => (await bob.request('GET', url)).status === 200, 'the thread is there')
  assert.is((await bob.directs()).length, 1)
  assert.equal((await bob.ask('GET', remote)).remote.refusals, [])
})

test('a daemon cannot impersonate a peer of a third one, nor join its direct room', async () => {
  const [ada, bob, cid] = all()
  const { daemon } = cid.identity
  const thread = { surface: 'thread', thread_id: 'thread_stolen' }
  await put(`m.team.${daemon}`, cid, { id: 'msg_third', from: ada.own.peer_id, ...thread })
  assert.match((await bob.refused('cid', 'verification_failed')).message, /peer of ada/)
  const before = (await bob.directs()).map(({ message_count: n }) => n)
  // A peer of its own that has the session of a peer of ada: ids of rooms are derived from sessions.
  const evil = `evil.${ada.own.session_id}`
  await put(`m.team.${daemon}`, cid, {
    protocol: 'svc-presence/v1',
    peers: [evil, cid.own.peer_id].map(peerId => ({ peer_id: peerId, name: peerId })),
  })
  const direct = { surface: 'direct', direct_peers: [evil, bob.own.peer_id] }
  await put(`d.${bob.identity.daemon}.team.${daemon}`, cid, { id: 'msg_room', from: evil, ...direct })
  const pair = [ada.own.peer_id, bob.own.peer_id]
  await put(`d.${bob.identity.daemon}.team.${daemon}`, cid, {
    ...{ id: 'msg_pair', from: ada.own.peer_id, surface: 'direct', direct_peers: pair },
  })
  const last = { id: 'msg_last', from: cid.own.peer_id, surface: 'direct' }
  await put(`d.${bob.identity.daemon}.team.${daemon}`, cid, {
    ...last,
    direct_peers: [cid.own.peer_id, bob.own.peer_id],
  })
  await eventually(async () => (await bob.directs()).length === 2, 'what cid may say is there')
  assert.not.ok((await bob.peers()).some(({ peer_id: id }) => id === evil))
  const room = (await bob.directs()).find(({ session_a: a, session_b: b }) => [a, b].includes(ada.own.session_id))
  assert.equal([room.message_count], before)
})

test.run()
