import { test } from 'uvu'
import * as assert from 'uvu/assert'
import network from '../../../../plugins/reach/network/index.js'
import { testCases } from '../../../fixtures/cases.js'
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

const capability = { id: 'review', summary: 'reviews code', outcome: 'a list of findings' }
const card = (peer_id: string) => ({
  ...{ peer_id, artifacts_supported: [], capabilities: [], profiles_supported: [], trust_modes_supported: [] },
})

/** A message that is refused, by the reason; each is judged in the order of the specification. */
type Peers = { readonly ada: string; readonly bob: string }
const refused: readonly (readonly [
  why: string,
  reason: string,
  status: number,
  (peers: Peers) => Record<string, unknown>,
])[] = [
  ['an id with a space', 'malformed', 400, () => ({ id: 'a b' })],
  ['a peer that is no peer id', 'malformed', 400, () => ({ to: 'Bob!' })],
  ['an expiry in the past', 'expired', 400, () => ({ expires_at: 1 })],
  [
    'a greeting in a thread',
    'invalid_surface',
    400,
    ({ ada }) => ({ kind: 'greet', surface: 'thread', body: { peer_card: card(ada) } }),
  ],
  ['a direct room without its id', 'invalid_surface', 400, () => ({ surface: 'direct' })],
  ['a thread with the surface direct', 'invalid_surface', 400, () => ({ surface: 'direct', thread_id: 'thread_one' })],
  [
    'a greeting that is for a peer',
    'malformed',
    400,
    ({ ada, bob }) => ({ kind: 'greet', to: bob, body: { peer_card: card(ada) } }),
  ],
  [
    'a greeting with the card of another',
    'malformed',
    400,
    ({ bob }) => ({ kind: 'greet', body: { peer_card: card(bob) } }),
  ],
  [
    'a response that answers nothing',
    'malformed',
    400,
    ({ ada }) => ({ kind: 'whois', body: { type: 'response', peer_card: card(ada) } }),
  ],
  ['a text of spaces', 'malformed', 400, () => ({ body: { text: '  ' } })],
  ['a receipt without work', 'malformed', 400, () => ({ kind: 'receipt', body: { for_id: 'a', status: 'accepted' } })],
  [
    'an accepted receipt with a reason',
    'malformed',
    400,
    () => ({ kind: 'receipt', work_id: 'w', body: { for_id: 'a', status: 'accepted', reason_code: 'busy' } }),
  ],
  [
    'a rejection without a reason',
    'malformed',
    400,
    () => ({ kind: 'receipt', work_id: 'w', body: { for_id: 'a', status: 'rejected' } }),
  ],
  [
    'work that goes back to submitted',
    'malformed',
    400,
    () => ({ kind: 'trace', work_id: 'w', body: { state: 'submitted' } }),
  ],
  ['work for no peer', 'malformed', 400, () => ({ work_id: 'w' })],
  ['a capability for no peer', 'malformed', 400, () => ({ kind: 'capability', work_id: 'w', body: capability })],
  [
    'a capability without outcome',
    'malformed',
    400,
    ({ bob }) => ({ kind: 'capability', to: bob, work_id: 'w', body: { id: 'x', summary: 'y' } }),
  ],
  ['a peer that is not there', 'not_found', 404, () => ({ to: 'carol.ses_1' })],
  ['a mention of a peer that is not there', 'not_found', 404, () => ({ mentions: ['carol.ses_1'] })],
  [
    'a trace of work that is not there',
    'not_found',
    404,
    ({ bob }) => ({ kind: 'trace', thread_id: 'thread_old', to: bob, work_id: 'none', body: { state: 'working' } }),
  ],
  [
    'a receipt that begins a thread',
    'conversation_not_found',
    404,
    ({ bob }) => ({
      kind: 'receipt',
      thread_id: 'thread_new',
      to: bob,
      work_id: 'w',
      body: { for_id: 'a', status: 'accepted' },
    }),
  ],
  ['a direct room that is not there', 'conversation_not_found', 404, () => ({ direct_id: `direct_${'0'.repeat(32)}` })],
  ['another message of a known id', 'duplicate', 409, () => ({ id: 'known', body: { text: 'something else' } })],
]

testCases({
  open: async () => {
    const channel = await openChannel()
    await channel.send('ada', { id: 'known', thread_id: 'thread_old', body: { text: 'first' } })
    return { ...channel, peers: { ada: channel.peer('ada').peer_id, bob: channel.peer('bob').peer_id } }
  },
  close: channel => channel.close(),
  cases: refused,
  name: ([why, reason]) => `a message is refused as ${reason}: ${why}`,
  run: async ({ send, peers }, [, reason, status, more]) => {
    const { status: got, body } = await send('ada', more(peers))
    assert.equal(
      [got, body.code, body.details.reason_code],
      [status, `message_${reason === 'not_found' ? 'target_not_found' : reason}`, reason],
      JSON.stringify(body),
    )
  },
  after: [
    'a refused message is counted and not stored',
    async ({ request, peers }) => {
      const { body } = await request('GET', '/channels/team')
      assert.equal([body.channel.message_count, body.channel.kind_counts], [1, [{ kind: 'say', count: 1 }]])
      assert.is((await request('GET', '/channels/team/threads')).body.page.total, 1)
      const { body: about } = await request('GET', `/peers/${peers.ada}`)
      assert.equal([about.peer.metrics.sent, about.peer.metrics.rejected], [1, refused.length])
    },
  ],
})

test('a repeated message is stored once', async () => {
  const { request, send, close } = await openChannel()
  try {
    const first = await send('ada', { id: 'once', thread_id: 'thread_one' })
    const second = await send('ada', { id: 'once', thread_id: 'thread_one' })
    assert.equal([second.status, second.body], [first.status, first.body])
    assert.is((await request('GET', '/channels/team/threads/thread_one/messages')).body.messages.length, 1)
  } finally {
    await close()
  }
})

test('a direct room has two sessions and one id from both sides, and excludes others', async () => {
  const { request, peer, send, close } = await openChannel(['ada', 'bob', 'eve'])
  try {
    const resolve = (from: string, to: string) =>
      request('POST', '/channels/team/directs/resolve', {
        session_id: peer(from).session_id,
        peer_id: peer(to).peer_id,
      })
    const { body } = await resolve('ada', 'bob')
    const room = body.direct.direct_id
    assert.match(room, /^direct_[a-f0-9]{32}$/)
    assert.is((await resolve('bob', 'ada')).body.direct.direct_id, room)
    assert.is((await resolve('ada', 'ada')).body.code, 'peer_not_found')
    assert.is((await send('eve', { direct_id: room })).body.details.reason_code, 'not_target')
    assert.is((await send('ada', { direct_id: room, to: peer('eve').peer_id })).body.details.reason_code, 'not_target')
    assert.is((await send('ada', { direct_id: room, body: { text: 'say direct' } })).status, 200)
    const { body: listed } = await request('GET', `/channels/team/directs/${room}/messages`)
    assert.equal(
      listed.messages.map((one: { text: string }) => one.text),
      ['say direct'],
    )
    const rooms = async (name: string) =>
      (await request('GET', `/channels/team/directs?session_id=${peer(name).session_id}`)).body.directs.length
    assert.equal([await rooms('ada'), await rooms('bob'), await rooms('eve')], [1, 1, 0])
    const waits = async (name: string) =>
      (await request('GET', `/inbox?session_id=${peer(name).session_id}`)).body.messages.length
    assert.is(await waits('eve'), 0)
  } finally {
    await close()
  }
})

test('work changes state between its two sides, in its thread, until it is done', async () => {
  const { request, peer, send, close } = await openChannel(['ada', 'bob', 'eve'])
  try {
    const [ada, bob] = [peer('ada').peer_id, peer('bob').peer_id]
    const work = async () => (await request('GET', '/work/job-1')).body.work
    const inWork = { thread_id: 'thread_job', work_id: 'job-1' }
    assert.is((await request('GET', '/work/job-1')).body.code, 'work_not_found')
    await send('ada', { ...inWork, id: 'ask', to: bob, body: { text: 'review it' } })
    assert.equal([(await work()).state, (await work()).target_session_id], ['submitted', peer('bob').session_id])
    const trace = (from: string, state: string, more = {}) =>
      send(from, { ...inWork, kind: 'trace', to: from === 'bob' ? ada : bob, body: { state }, ...more })
    const receipt = (status: string) =>
      send('bob', { ...inWork, kind: 'receipt', to: ada, body: { for_id: 'ask', status } })
    assert.is((await receipt('accepted')).status, 200)
    assert.is((await work()).state, 'submitted')
    const reason = async (sent: Promise<{ body: { details?: { reason_code: string } } }>) =>
      (await sent).body.details?.reason_code
    assert.is(await reason(trace('eve', 'working')), 'work_container_mismatch')
    await send('ada', { thread_id: 'thread_other' })
    assert.is(await reason(trace('bob', 'working', { thread_id: 'thread_other' })), 'work_container_mismatch')
    for (const state of ['working', 'needs_input', 'working', 'completed']) {
      const { status, body } = await trace('bob', state)
      assert.is(status, 200, JSON.stringify(body))
      assert.is((await work()).state, state)
    }
    assert.is(await reason(trace('bob', 'working')), 'work_closed')
    assert.is((await request('GET', '/channels/team/threads?has_work=true')).body.page.total, 0)
    assert.ok((await work()).terminal_at)
  } finally {
    await close()
  }
})

test('messages and threads are paged, and found by session, text and work', async () => {
  const { request, peer, send, close } = await openChannel()
  try {
    for (const n of [1, 2, 3, 4, 5])
      await send('ada', { id: `m${n}`, thread_id: 'thread_long', body: { text: `text ${n}` } })
    const ids = async (query: string) => {
      const { body } = await request('GET', `/channels/team/threads/thread_long/messages?${query}`)
      return [
        body.messages.map((one: { message_id: string }) => one.message_id).join(),
        body.page.has_more,
        body.page.next_cursor,
      ]
    }
    assert.equal(await ids('limit=2'), ['m4,m5', true, 'm4'])
    assert.equal(await ids('limit=2&before=m4'), ['m2,m3', true, 'm2'])
    assert.equal(await ids('limit=2&before=m2'), ['m1', false, undefined])
    assert.equal(await ids('limit=2&after=m1'), ['m2,m3', true, 'm3'])
    assert.equal(await ids('limit=9&after=m3'), ['m4,m5', false, undefined])
    assert.equal(await ids('kind=trace'), ['', false, undefined])
    assert.is(
      (await request('GET', '/channels/team/threads/thread_long/messages?after=none')).body.code,
      'network_message_not_found',
    )
    await send('bob', { thread_id: 'thread_short', body: { text: 'About Ducks' } })
    const threads = async (query: string) => {
      const { body } = await request('GET', `/channels/team/threads?${query}`)
      return [
        body.threads.map((one: { thread_id: string }) => one.thread_id).join(),
        body.page.total,
        body.page.next_cursor,
      ]
    }
    assert.equal((await threads('')).slice(0, 2), ['thread_short,thread_long', 2])
    const [first, , cursor] = await threads('limit=1&sort=oldest')
    assert.equal(
      [first, await threads(`limit=1&sort=oldest&after=${cursor}`)],
      ['thread_long', ['thread_short', 2, undefined]],
    )
    assert.equal(await threads('query=ducks'), ['thread_short', 1, undefined])
    assert.equal(await threads(`session_id=${peer('ada').session_id}`), ['thread_long', 1, undefined])
    assert.is((await request('GET', '/channels/team/threads?after=nonsense')).body.code, 'invalid_cursor')
    const { body } = await request('GET', '/channels?recent_limit=1')
    assert.equal(
      [body.recents.map((one: { container_id: string }) => one.container_id), body.channels.length],
      [['thread_short'], 1],
    )
  } finally {
    await close()
  }
})

test('channels have unique names, can be changed, and are deleted with their workspace', async () => {
  const { request, peer, close } = await openChannel()
  try {
    assert.is((await request('POST', '/channels', { channel: 'team' })).body.code, 'channel_exists')
    assert.is((await request('POST', '/channels', { channel: 'No Good' })).status, 400)
    const half = await request('POST', '/channels', { channel: 'half', agent_names: ['ada', 'nobody'] })
    assert.equal([half.status, half.body.code], [404, 'agent_not_found'], 'bad input changes nothing')
    assert.is((await request('GET', '/channels/half')).body.code, 'channel_not_found')
    assert.is((await request('GET', '/channels/none')).body.code, 'channel_not_found')
    assert.is(
      (await request('PATCH', '/channels/team', { coordinator_peer_id: 'eve.ses_1' })).body.code,
      'peer_not_found',
    )
    const changed = await request('PATCH', '/channels/team', {
      coordinator_peer_id: peer('bob').peer_id,
      purpose: null,
      fanout_policy: 'coordinator',
    })
    const { coordinator_peer_id: coordinator, purpose, fanout_policy: policy, sessions } = changed.body.channel
    assert.equal([coordinator, purpose, policy, sessions.length], [peer('bob').peer_id, undefined, 'coordinator', 2])
  } finally {
    await close()
  }
})

test('a session chooses its notifications for a channel or a thread', async () => {
  const { request, peer, send, close } = await openChannel()
  try {
    const { session_id } = peer('bob')
    const put = (body: object) => request('PUT', '/channels/team/subscriptions', { session_id, ...body })
    assert.is((await put({ mode: 'muted', thread_id: 'thread_none' })).body.code, 'conversation_not_found')
    await send('ada', { thread_id: 'thread_loud' })
    assert.is((await put({ mode: 'muted', thread_id: 'thread_loud' })).body.subscription.thread_id, 'thread_loud')
    assert.is((await put({ mode: 'mentions' })).body.subscription.mode, 'mentions')
    assert.is((await put({ mode: 'loud' })).status, 400)
    const { body } = await request('GET', `/channels/team/subscriptions?session_id=${session_id}`)
    assert.equal(
      body.subscriptions.map((one: Record<string, unknown>) => [one.thread_id, one.mode]),
      [
        [undefined, 'mentions'],
        ['thread_loud', 'muted'],
      ],
    )
    assert.is((await request('DELETE', `/channels/team/subscriptions/${session_id}?thread_id=thread_loud`)).status, 204)
    assert.is((await request('DELETE', `/channels/team/subscriptions/${session_id}?thread_id=thread_loud`)).status, 404)
  } finally {
    await close()
  }
})

test('a peer takes part until its session is stopped permanently, and the status counts it', async () => {
  const { kernel, request, peer, send, workspaceId, close } = await openChannel()
  try {
    const status = async () => (await kernel.request('GET', '/api/network/status')).body.network
    assert.equal([(await status()).status, (await status()).local_peers, (await status()).channels], ['active', 2, 1])
    for (const name of ['ada', 'bob'])
      await kernel.request('DELETE', `/api/workspaces/${workspaceId}/sessions/${peer(name).session_id}`)
    await eventually(async () => (await status()).status === 'ready', 'nobody is there')
    assert.is((await request('GET', '/peers')).body.peers.length, 0)
    const sent = await send('ada', {})
    assert.ok([403, 404].includes(sent.status), JSON.stringify(sent.body))
  } finally {
    await close()
  }
})

test.run()
