import { request as httpRequest } from 'node:http'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type ServerEvent, SseParser } from '../../../../client/sse.js'
import { observe, tasks } from '../../../../plugins/index.js'
import { WAIT_MS } from '../../../../plugins/reach/network/agent/agent-channels.js'
import { Feeds } from '../../../../plugins/reach/network/agent/feeds.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { eventually } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'
import { openAgents } from './agent-scene.js'

/** A reader of a stream, and what it got so far. */
function read(home: string, url: string, lastEventId?: string) {
  const frames: ServerEvent[] = []
  const parser = new SseParser()
  let ended = false
  const headers = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
  const request = httpRequest({ socketPath: path.join(home, 'daemon.sock'), path: url, headers }, response => {
    response.setEncoding('utf8')
    response.on('data', (text: string) => frames.push(...parser.push(text)))
    response.on('end', () => {
      ended = true
    })
    response.on('error', () => {})
  })
  request.on('error', () => {})
  request.end()
  const texts = () => frames.flatMap(({ data }) => (data as Reply).message?.text ?? [])
  return {
    frames,
    texts,
    ended: () => eventually(async () => ended, 'the end of the stream'),
    has: (...wanted: string[]) =>
      eventually(async () => texts().join() === wanted.join(), `${wanted.join()}, and there is ${texts().join()}`),
    close: () => request.destroy(),
  }
}

const status = { metadata: { message_kind: 'status' } }
const ids = (reply: { body: Reply }) => reply.body.messages.map((one: Reply) => one.message_id)

test('an agent sends to its channel; another one receives the message until it acknowledges it', async () => {
  const scene = await openAgents()
  try {
    const [ada, bob] = [await scene.agent('ada'), await scene.agent('bob')]
    const { body: listed } = await ada.get('/api/agent/channels')
    assert.equal(
      listed.channels.map((one: Reply) => [one.id, one.workspace_id, one.allowed_message_kinds.length]),
      [['team', scene.workspaceId, 7]],
    )
    const sent = await ada.post('/api/agent/channels/team/send', { ...status, body: { tests: 12 } })
    assert.is(sent.status, 202, JSON.stringify(sent.body))
    const { message } = sent.body
    assert.equal(
      [message.body, message.channel_id, message.from_session_id, message.metadata],
      [
        { tests: 12 },
        'team',
        scene.peer('ada').session_id,
        { channel_id: 'team', correlation_id: message.message_id, message_kind: 'status', run_id: '', task_id: '' },
      ],
    )
    const first = await bob.get('/api/agent/channels/team/recv')
    assert.equal(first.body.messages, [message])
    assert.equal(ids(await bob.get('/api/agent/channels/team/recv')), [message.message_id])
    assert.equal(ids(await bob.get(`/api/agent/channels/team/recv?after=${message.message_id}`)), [])
    assert.equal(ids(await bob.get('/api/agent/channels/team/recv')), [])
    assert.equal(ids(await ada.get('/api/agent/channels/team/recv')), [])
  } finally {
    await scene.close()
  }
})

test('an answer goes to the sender in the same place, and marks the message as read', async () => {
  const scene = await openAgents()
  try {
    const [ada, bob] = [await scene.agent('ada'), await scene.agent('bob')]
    const { body } = await ada.post('/api/agent/channels/team/send', {
      metadata: { message_kind: 'status', correlation_id: 'release 7' },
      body: 'half of it is done',
    })
    const messageId = body.message.message_id
    const answered = await bob.post('/api/agent/channels/reply', {
      metadata: { message_kind: 'reply' },
      body: 'say thanks',
      reply_to_message_id: messageId,
    })
    assert.is(answered.status, 202, JSON.stringify(answered.body))
    assert.is(answered.body.message.to_session_id, scene.peer('ada').session_id)
    assert.equal(ids(await bob.get('/api/agent/channels/team/recv')), [])
    const { body: threads } = await scene.request('GET', '/channels/team/threads')
    assert.equal(
      threads.threads.map((one: Reply) => [one.root_message_id, one.message_count]),
      [[messageId, 2]],
    )
    assert.is((await scene.prompts('bob')).length, 0)
    await eventually(async () => (await scene.prompts('ada')).length === 1, 'the answer wakes who asked')
    const more = await ada.post('/api/agent/channels/team/send', {
      metadata: { message_kind: 'result', correlation_id: 'release 7' },
      body: 'all of it is done',
    })
    assert.is(more.status, 202)
    assert.is((await scene.request('GET', '/channels/team/threads')).body.page.total, 1)
  } finally {
    await scene.close()
  }
})

test('a repeated key sends a message once, and an invalid message is refused', async () => {
  const scene = await openAgents({ agents: ['ada', 'bob', 'eve'] })
  try {
    const ada = await scene.agent('ada')
    const send = (more: object) => ada.post('/api/agent/channels/team/send', { ...status, body: 'once', ...more })
    const one = await send({ idempotency_key: 'k' })
    const two = await send({ idempotency_key: 'k' })
    assert.equal(two.body, one.body)
    const other = await send({ idempotency_key: 'k', body: 'something else' })
    assert.equal(
      [other.status, other.body.code, other.body.details.reason_code],
      [422, 'coordination_invalid', 'duplicate'],
    )
    const wrong: readonly (readonly [object, number, string])[] = [
      [{ metadata: { message_kind: 'gossip' } }, 422, 'unprocessable'],
      [{ metadata: undefined }, 422, 'unprocessable'],
      [{ body: '  ' }, 422, 'coordination_invalid'],
      [{ metadata: { message_kind: 'status', channel_id: 'other' } }, 422, 'coordination_invalid'],
      [{ metadata: { message_kind: 'status', run_id: 'trun_0' } }, 422, 'coordination_invalid'],
      [{ metadata: { message_kind: 'status', task_id: 'task_0' } }, 422, 'coordination_invalid'],
      [{ metadata: { message_kind: 'status', ext: { to_session_id: 'ses_0' } } }, 404, 'peer_not_found'],
    ]
    for (const [more, status, code] of wrong) {
      const refused = await send(more)
      assert.equal([refused.status, refused.body.code], [status, code], JSON.stringify(refused.body))
    }
    const { body } = await scene.request('GET', '/channels/team')
    assert.is(body.channel.message_count, 1)
    assert.is(
      (await ada.post('/api/agent/channels/none/send', { ...status, body: 'x' })).body.code,
      'channel_not_found',
    )
    await scene.request('POST', '/channels', { channel: 'others' })
    assert.is((await ada.post('/api/agent/channels/others/send', { ...status, body: 'x' })).body.code, 'peer_absent')
    assert.is((await ada.get('/api/agent/channels/others/recv')).status, 403)
    assert.is((await ada.get('/api/agent/channels/team/recv?after=none')).body.code, 'network_message_not_found')
    // A room of two is not there for a third one.
    const eve = await scene.agent('eve')
    const { body: room } = await scene.request('POST', '/channels/team/directs/resolve', {
      session_id: scene.peer('ada').session_id,
      peer_id: scene.peer('bob').peer_id,
    })
    const { id } = await scene.say('ada', 'say between us', { direct_id: room.direct.direct_id })
    const overheard = await eve.post('/api/agent/channels/reply', { ...status, body: 'x', reply_to_message_id: id })
    assert.is(overheard.body.code, 'network_message_not_found')
    const peeked = await eve.get(
      `/api/workspaces/${scene.workspaceId}/network/channels/team/directs/${room.direct.direct_id}/messages`,
    )
    assert.is(peeked.body.code, 'conversation_not_found')
    assert.is(peeked.body.details.next, 'svc network directs list team')
    const threads = await eve.get(`/api/workspaces/${scene.workspaceId}/network/channels/team/threads`)
    assert.is(threads.status, 200, JSON.stringify(threads.body))
  } finally {
    await scene.close()
  }
})

test('a waiting call returns when a message arrives', async () => {
  const scene = await openAgents()
  try {
    const [ada, bob] = [await scene.agent('ada'), await scene.agent('bob')]
    const waiting = bob.get('/api/agent/channels/team/recv?wait=true')
    const sent = await ada.post('/api/agent/channels/team/send', { ...status, body: 'now' })
    assert.equal(ids(await waiting), [sent.body.message.message_id])
  } finally {
    await scene.close()
  }
})

test('a message for a disconnected client waits for the next call', async () => {
  const scene = await openAgents()
  try {
    const [ada, bob] = [await scene.agent('ada'), await scene.agent('bob')]
    const path = '/api/agent/channels/team/recv?wait=true'
    const gone = httpRequest({ socketPath: bob.socketPath, path })
    const closed = new Promise(resolve => gone.once('close', resolve))
    gone.on('error', () => {})
    gone.end()
    // The second call waits as well: what the daemon has read of the first one came before.
    const waiting = bob.get(path)
    await new Promise(resolve => gone.once('finish', resolve))
    gone.destroy()
    await closed
    const sent = await ada.post('/api/agent/channels/team/send', { ...status, body: 'now' })
    assert.equal(ids(await waiting), [sent.body.message.message_id])
    assert.equal(ids(await bob.get('/api/agent/channels/team/recv')), [sent.body.message.message_id])
  } finally {
    await scene.close()
  }
})

test('a call returns at most 1 MiB of messages, but at least one; the rest follows in the next', async () => {
  const scene = await openAgents()
  try {
    const [ada, bob] = [await scene.agent('ada'), await scene.agent('bob')]
    const sent: string[] = []
    for (const kib of [900, 400, 400, 400]) {
      const reply = await ada.post('/api/agent/channels/team/send', { ...status, body: 'x'.repeat(kib * 1024) })
      assert.is(reply.status, 202, JSON.stringify(reply.body).slice(0, 300))
      sent.push(reply.body.message.message_id)
    }
    const got: string[][] = []
    for (let after = ''; got.flat().length < sent.length; after = `?after=${got.flat().at(-1)}`) {
      const next = ids(await bob.get(`/api/agent/channels/team/recv${after}`))
      assert.ok(next.length > 0)
      got.push(next)
    }
    assert.equal(got, [sent.slice(0, 1), sent.slice(1, 3), sent.slice(3)])
  } finally {
    await scene.close()
  }
})

test('a call waits 25 seconds for a message, and not after a disconnect', async () => {
  const clock = new VirtualClock()
  const feeds = new Feeds({ clock } as never, {} as never)
  const requests: number[] = []
  const wait = (signal: AbortSignal) =>
    feeds.until({ workspaceId: 'ws_1', channel: 'team' }, () => void requests.push(clock.now()), signal, WAIT_MS)
  let answer: unknown = 'waits'
  const over = wait(new AbortController().signal).then(value => {
    answer = value
  })
  await clock.advance(WAIT_MS - 1)
  assert.is(answer, 'waits')
  await clock.advance(1)
  await over
  assert.equal([answer, requests.length, clock.pending], [undefined, 1, 0])
  const client = new AbortController()
  const hungUp = wait(client.signal)
  client.abort()
  assert.equal([await hungUp, requests.length, clock.pending], [undefined, 2, 0])
})

test('a watcher gets the newest messages, then live ones, and resumes at its position', async () => {
  const scene = await openAgents()
  const base = `/api/workspaces/${scene.workspaceId}/network/watch`
  try {
    for (const text of ['one', 'two', 'three']) await scene.say('ada', text, { thread_id: 'thread_count' })
    await scene.request('POST', '/channels', { channel: 'other' })
    const all = read(scene.home, base)
    const last = read(scene.home, `${base}?channel=team&recent=1`)
    await all.has('one', 'two', 'three')
    await last.has('three')
    await scene.say('bob', 'four', { thread_id: 'thread_count' })
    await all.has('one', 'two', 'three', 'four')
    await last.has('three', 'four')
    const [, second] = all.frames
    const again = read(scene.home, `${base}?channel=team&recent=0`, second?.id)
    await again.has('three', 'four')
    assert.is((await scene.request('GET', '/watch?channel=none')).body.code, 'channel_not_found')
    for (const reader of [all, last, again]) reader.close()
  } finally {
    await scene.close()
  }
})

test('the conversation of a run is replayed, followed and ended with the run', async () => {
  const scene = await openAgents({ plugins: [tasks] })
  const { request } = scene.kernel
  try {
    const begin = async (more: object) => {
      const task = { title: 'work', scope: 'workspace', workspace: scene.workspaceId, ...more }
      const made = await request('POST', '/api/tasks', task)
      const { status, body } = await request('POST', `/api/tasks/${made.body.task.id}/start`, {})
      assert.is(status, 201, JSON.stringify(body))
      return body.run.id as string
    }
    const live = { mode: 'live', channel_strategy: 'named', channel_id: 'team' }
    const run = await begin({ network_participation: live })
    const url = `/api/task-runs/${run}/conversation/stream`
    const first = await scene.say('ada', 'one', { thread_id: 'thread_run' })
    const reader = read(scene.home, url)
    await reader.has('one')
    await scene.say('bob', 'two', { thread_id: 'thread_run' })
    await reader.has('one', 'two')
    assert.is((await request('POST', `/api/task-runs/${run}/cancel`, {})).status, 200)
    await reader.ended()
    const kinds = reader.frames.map(({ event }) => event)
    assert.equal(kinds, ['usage', 'message', 'message', 'usage'])
    // Of a run that has ended it is replayed, from a message on or after a cut.
    for (const again of [read(scene.home, `${url}?after=${first.id}`), read(scene.home, url, first.id)]) {
      await again.ended()
      assert.equal(again.texts(), ['two'])
    }
    assert.is((await request('GET', `${url}?after=none`)).body.code, 'network_position_unknown')
    const local = await begin({})
    const refused = await request('GET', `/api/task-runs/${local}/conversation/stream`)
    assert.equal([refused.status, refused.body.code], [409, 'run_not_live'])
    assert.is((await request('GET', '/api/task-runs/none/conversation/stream')).body.code, 'task_run_not_found')
  } finally {
    await scene.close()
  }
})

test('an agent gets its channel, pending messages and present peers; a message becomes one task', async () => {
  const scene = await openAgents({ plugins: [tasks, observe] })
  try {
    const bob = await scene.agent('bob')
    const { message_id: id, thread_id: thread } = await scene
      .say('ada', 'Review the parser\n\nIt fails on tabs.')
      .then((message: Reply) => ({ message_id: message.id, thread_id: message.thread_id }))
    const { context } = (await bob.get('/api/agent/context')).body
    assert.equal(
      [
        context.coordination_channel.available,
        context.coordination_channel.channel.id,
        context.inbox_summary.unread_count,
      ],
      [true, 'team', 1],
    )
    assert.equal(
      context.inbox_summary.items.map((one: Reply) => [one.message_id, one.channel_id, one.preview]),
      [[id, 'team', 'Review the parser It fails on tabs.']],
    )
    assert.equal(
      context.peer_roster.peers.map((one: Reply) => [one.peer_id, one.session_id]),
      [[scene.peer('ada').peer_id, scene.peer('ada').session_id]],
    )
    const { me } = (await bob.get('/api/agent/me')).body
    assert.equal(
      me.channels.map((one: Reply) => one.id),
      ['team'],
    )
    const at = `/channels/team/threads/${thread}`
    const missing = await scene.request('POST', `${at}/promote-task`, { origin_message_id: 'msg_none' })
    assert.is(missing.body.code, 'network_message_not_found')
    const made = await scene.request('POST', `${at}/promote-task`, { origin_message_id: id, priority: 'high' })
    assert.is(made.status, 201, JSON.stringify(made.body))
    const { origin, task } = made.body
    assert.equal(
      [task.title, task.priority, task.origin.kind, task.origin.ref, task.current_run_id],
      ['Review the parser', 'high', 'network', thread, undefined],
    )
    assert.equal([origin.task_id, origin.source_message_ids], [task.id, [id]])
    const again = await scene.request('POST', `${at}/promote-task`, { origin_message_id: id })
    assert.equal([again.body.task.id, again.body.origin], [task.id, origin])
    const { body: shown } = await scene.request('GET', at)
    assert.equal(shown.task_links, [origin])
    const { body: overview } = await scene.kernel.request('GET', '/api/observe/overview')
    assert.is(overview.overview.network.messages_today, 1)
  } finally {
    await scene.close()
  }
})

test('the room of two sessions is hidden from other agents', async () => {
  const scene = await openAgents({ agents: ['ada', 'bob', 'eve'] })
  try {
    const { body } = await scene.request('POST', '/channels/team/directs/resolve', {
      session_id: scene.peer('ada').session_id,
      peer_id: scene.peer('bob').peer_id,
    })
    await scene.say('ada', 'said in the open', { thread_id: 'thread_open' })
    await scene.say('ada', 'say for bob alone', { direct_id: body.direct.direct_id })
    const channels = `/api/workspaces/${scene.workspaceId}/network/channels?recent_limit=10`
    const places = async (name: string) =>
      (await (await scene.agent(name)).get(channels)).body.recents.map((one: Reply) => one.surface).toSorted()
    assert.equal([await places('bob'), await places('eve')], [['direct', 'thread'], ['thread']])
    const [channel] = (await (await scene.agent('eve')).get(channels)).body.channels
    assert.is(channel.last_message_preview, 'said in the open')
  } finally {
    await scene.close()
  }
})

test.run()
