import { readFileSync } from 'node:fs'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import auth from '../../../../plugins/access/auth/index.js'
import identity from '../../../../plugins/access/identity/index.js'
import { agentText } from '../../../fixtures/session-world.js'
import { ask } from '../../../kernel/http/doors.js'
import { openScene } from './scene.js'

test('a message to a channel that wakes more than 3 sessions needs a confirmation, not by an agent', async () => {
  const { workspaceId, peer, at, prompt, say, post, disposition, request, wakesOf, close } = await openScene({
    agents: ['ada', 'bob', 'eve', 'dan', 'kim'],
    plugins: [auth, identity],
    listen: ['socket'],
  })
  try {
    const all = { mentions: ['channel'], body: { text: 'say here' }, thread_id: 'thread_all' }
    const refused = await post('ada', all)
    assert.equal(
      [refused.status, refused.body.code, refused.body.details?.wake_count],
      [400, 'wake_confirmation_required', '4'],
    )
    assert.is((await request('GET', '/channels/team/threads/thread_all')).status, 404)
    const pid = Number(/\d+/.exec(agentText(await prompt(at('ada'), 'pid')))?.[0])
    const socketPath = /(?:^|\0)SVC_SOCKET=([^\0]*)/.exec(readFileSync(`/proc/${pid}/environ`, 'utf8'))?.[1] ?? ''
    const byAgent = await ask({ socketPath }, `/api/workspaces/${workspaceId}/network/send`, {
      method: 'POST',
      body: { ...all, channel: 'team', kind: 'say', session_id: peer('ada').session_id, confirm_wakes: true },
    })
    assert.equal([byAgent.status, byAgent.body.code], [400, 'wake_confirmation_required'])
    assert.equal(await wakesOf('bob'), [])
    const sent = await say('ada', 'say here', { mentions: ['channel'], confirm_wakes: true })
    assert.equal(await disposition(sent), { woken: 4 })
  } finally {
    await close()
  }
})

test('a message to a channel is for its coordinator, or for the peers with the named capability', async () => {
  const { peer, say, post, disposition, request, close } = await openScene({
    agents: ['ada', 'bob', 'eve', 'dan', 'kim'],
  })
  try {
    const patch = (body: object) => request('PATCH', '/channels/team', body)
    assert.is((await patch({ fanout_policy: 'coordinator', coordinator_peer_id: peer('eve').peer_id })).status, 200)
    assert.equal(await disposition(await say('ada', 'say lead', { mentions: ['channel'] })), {
      woken: 1,
      not_addressed: 3,
    })
    assert.equal(await disposition(await say('ada', 'say nothing')), { woken: 0, not_addressed: 4 })
    await patch({ fanout_policy: 'capability_match' })
    const card = {
      ...{ peer_id: peer('dan').peer_id, artifacts_supported: [], profiles_supported: [], trust_modes_supported: [] },
      capabilities: [{ id: 'code-review', summary: 'reads changes' }],
    }
    const greeted = await post('dan', { kind: 'greet', body: { peer_card: card } })
    assert.is(greeted.status, 200, JSON.stringify(greeted.body))
    const intent = { mentions: ['channel'], body: { text: 'say a look', intent: 'code-review' } }
    const one = await post('ada', intent)
    assert.equal(await disposition(one.body.message), { woken: 1, not_addressed: 3 })
    assert.equal(await disposition(await say('ada', 'say no one can', { mentions: ['channel'] })), {
      woken: 0,
      not_addressed: 4,
    })
  } finally {
    await close()
  }
})

test('a session with notifications off or for mentions is woken only by name', async () => {
  const { peer, say, disposition, inbox, request, close } = await openScene()
  try {
    const bob = peer('bob')
    const want = async (mode: string, thread_id?: string) => {
      const body = { session_id: bob.session_id, mode, ...(thread_id !== undefined && { thread_id }) }
      assert.is((await request('PUT', '/channels/team/subscriptions', body)).status, 200)
    }
    await want('mentions')
    await say('ada', 'say to all', { thread_id: 'thread_one' })
    assert.equal(await inbox('bob'), [])
    await want('muted')
    await want('all', 'thread_one')
    const heard = await say('ada', 'say in the thread', { thread_id: 'thread_one' })
    assert.equal(await inbox('bob'), [heard.id])
    const mention = await say('ada', 'say muted', { mentions: [bob.peer_id] })
    assert.equal([await disposition(mention), await inbox('bob')], [{ woken: 0, not_addressed: 1 }, [heard.id]])
    assert.equal(await disposition(await say('ada', 'say by name', { to: 'bob' })), { woken: 1 })
  } finally {
    await close()
  }
})

test('two peers that answer each other are paused for a minute, with one notice', async () => {
  const { say, post, request, told, inbox, peer, close } = await openScene({ agents: ['ada', 'bob', 'eve'] })
  try {
    const thread = { thread_id: 'thread_loop' }
    for (let n = 0; n < 20; n++) await say(n % 2 === 0 ? 'ada' : 'bob', `turn ${n}`, thread)
    for (const from of ['ada', 'bob', 'ada']) {
      const { status, body } = await post(from, { ...thread, body: { text: 'again' } })
      assert.equal([status, body.code, body.details?.reason_code], [503, 'message_busy', 'busy'])
    }
    await say('eve', 'enough', thread)
    const { messages } = (await request('GET', '/channels/team/threads/thread_loop/messages?limit=100')).body
    const notices = messages.filter((one: { peer_from: string }) => one.peer_from === 'svc')
    assert.is(messages.length, 22)
    assert.is(notices.length, 1)
    assert.ok(notices[0].text.includes(peer('ada').peer_id) && notices[0].text.includes(peer('bob').peer_id))
    assert.ok((await inbox('ada')).includes(notices[0].message_id))
    assert.ok(!(await inbox('eve')).includes(notices[0].message_id))
    assert.equal(
      (await told('network.pair.stopped')).map(({ channel, peers }) => [channel, peers.length]),
      [['team', 2]],
    )
  } finally {
    await close()
  }
})

test('a peer that writes often without answers is not stopped', async () => {
  const { say, told, close } = await openScene()
  try {
    for (let n = 0; n < 25; n++) await say('ada', `line ${n}`, { thread_id: 'thread_report' })
    assert.equal(await told('network.pair.stopped'), [])
  } finally {
    await close()
  }
})

test.run()
