import { test } from 'uvu'
import * as assert from 'uvu/assert'
import network from '../../../../plugins/reach/network/index.js'
import { eventually, openWorld } from '../../../fixtures/session-world.js'

/** A workspace in which sessions of two agents take part in a channel. */
async function openChannel(agents: readonly string[] = ['ada', 'bob']) {
  const world = await openWorld({ plugins: [network] })
  for (const name of agents) await world.agent(name)
  const base = `/api/workspaces/${world.workspaceId}/network`
  const request = (method: string, path: string, body?: unknown) => world.kernel.request(method, `${base}${path}`, body)
  const { status, body } = await request('POST', '/channels', {
    channel: 'team',
    agent_names: agents,
    purpose: 'all of it',
  })
  assert.is(status, 201, JSON.stringify(body))
  const peers = new Map<string, { peer_id: string; session_id: string }>()
  for (const peer of body.channel.peers) peers.set(peer.peer_id.split('.')[0], peer)
  const peer = (name: string) => peers.get(name) as { peer_id: string; session_id: string }
  const send = (from: string, more: Record<string, unknown>) =>
    request('POST', '/send', {
      channel: 'team',
      kind: 'say',
      session_id: peer(from).session_id,
      body: { text: 'hello' },
      ...more,
    })
  return { ...world, request, peer, send }
}

test('a channel has a session of each agent; a message to a peer wakes it and is in the thread', async () => {
  const { request, peer, send, close, events, workspaceId } = await openChannel()
  try {
    const sent = await send('ada', { to: peer('bob').peer_id, body: { text: 'say yes' } })
    assert.is(sent.status, 200, JSON.stringify(sent.body))
    const { thread_id: thread, id } = sent.body.message
    const listed = await request('GET', `/channels/team/threads/${thread}/messages`)
    assert.equal(
      listed.body.messages.map((one: Record<string, unknown>) => [
        one.message_id,
        one.peer_from,
        one.peer_to,
        one.text,
        one.direction,
      ]),
      [[id, peer('ada').peer_id, peer('bob').peer_id, 'say yes', 'sent']],
    )
    const at = `/api/workspaces/${workspaceId}/sessions/${peer('bob').session_id}`
    await eventually(async () => (await events(at)).some(({ type }) => type === 'done'), 'the peer is woken')
    const { body } = await request('GET', '/channels/team/threads')
    assert.equal(
      body.threads.map((one: Record<string, unknown>) => [
        one.thread_id,
        one.message_count,
        one.root_message_id,
        one.title,
      ]),
      [[thread, 1, id, 'say yes']],
    )
  } finally {
    await close()
  }
})

test.run()
