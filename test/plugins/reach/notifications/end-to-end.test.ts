import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { disk, notifications, tasks } from '../../../../plugins/index.js'
import { eventually } from '../../../fixtures/session-world.js'
import { openChat } from '../bridges/chat.js'

const LIST = '/api/notifications/attention'
const ops = { group_id: 'ops' }
const ask = JSON.stringify({
  toolCall: { toolCallId: 't1', title: 'Run the tests', kind: 'execute' },
  options: [
    { optionId: 'y', name: 'Yes', kind: 'allow_once' },
    { optionId: 'n', name: 'No', kind: 'reject_once' },
  ],
})

const open = (more: object = {}) => openChat({ plugins: [disk, tasks, notifications], ...more })

test('a finished task is announced once in a room across a restart, and a failure is listed until acknowledged', async () => {
  const chat = await open()
  const { request } = chat.world.kernel
  try {
    const preset = await request('POST', '/api/notifications/presets', {
      name: 'ends',
      events: ['task.run_*'],
      filter: 'severity >= error',
      targets: [{ bridge_id: chat.bridge, canonical_route: 'group:ops' }],
      enabled: true,
    })
    assert.is(preset.status, 201, JSON.stringify(preset.body))
    const { task } = (await request('POST', '/api/tasks', { title: 'Build', scope: 'global' })).body
    const subscribed = await request('POST', `/api/tasks/${task.id}/notifications/bridges`, {
      bridge_instance_id: chat.bridge,
      delivery_mode: 'direct-send',
      scope: 'workspace',
      workspace_id: chat.world.workspaceId,
      peer_id: 'ada',
    })
    assert.is(subscribed.status, 201, JSON.stringify(subscribed.body))
    const { run } = (await request('POST', `/api/tasks/${task.id}/start`)).body
    const failed = await request('POST', `/api/runs/${run.id}/fail`, { reason: 'exit 1' })
    assert.ok(failed.status < 300, JSON.stringify(failed.body))
    await chat.reads(texts => texts.some(text => text.startsWith('Task run was made to fail: Build')), ops)
    const item = async () => {
      const { items } = (await chat.world.kernel.request('GET', LIST)).body
      return items.find(({ id }: { id: string }) => id === `task:${task.id}`)
    }
    assert.is((await item())?.kind, 'failure')
    await chat.restart()
    assert.ok(await item(), 'it is listed after the restart')
    const { snapshot } = (await chat.world.kernel.request('GET', LIST)).body
    const body = { snapshot, id: `task:${task.id}` }
    assert.is((await chat.world.kernel.request('POST', `${LIST}/acknowledge`, body)).status, 204)
    assert.is(await item(), undefined)
    assert.is(chat.platform.room(ops).length, 1)

    await chat.world.kernel.request('POST', `/api/tasks/${task.id}/cancel`, { reason: 'enough' })
    await chat.reads(texts => texts.some(text => /^Task (canceled|failed): Build/.test(text)))
    const row = await eventually(async () => {
      const { subscriptions } = (await chat.world.kernel.request('GET', `/api/tasks/${task.id}/notifications/bridges`))
        .body
      return subscriptions[0].cursor.last_delivered_at && subscriptions[0]
    }, 'a subscription whose message is delivered')
    assert.is(row.cursor.last_error, undefined)
  } finally {
    await chat.close()
  }
})

test('a permission question is listed and announced except where watched, and removed with its answer', async () => {
  const chat = await open({ permissions: 'approve-reads' })
  const { world } = chat
  const { request } = world.kernel
  try {
    await request('POST', '/api/notifications/presets', {
      name: 'questions',
      events: ['attention.asked'],
      targets: [{ bridge_id: chat.bridge, canonical_route: 'group:ops' }],
      enabled: true,
    })
    const { id, at } = await world.session('ada', { name: 'Docs' })
    const asks = async () => {
      await request('POST', `${at}/prompt`, { message: `ask ${ask}` })
      return eventually(async () => {
        const { items } = (await request('GET', `${LIST}?workspace=${world.workspaceId}`)).body
        return items.find(({ kind }: { kind: string }) => kind === 'permission')
      }, 'a question in the list')
    }
    const item = await asks()
    assert.equal(
      [item.title, item.session_id, item.request_kind, item.agent_name],
      ['Run the tests', id, 'decide', 'ada'],
    )
    const [text = ''] = await chat.reads(texts => texts.length > 0, ops)
    assert.match(text, /^Docs wants to: Run the tests\n`svc session approve ses_\w+ --request per_\w+`$/)
    const answer = async ({ source_id: requestId }: { source_id: string }) => {
      const { turn_id } = await world.until(
        at,
        ({ type, content }) => type === 'permission' && content.request_id === requestId,
      )
      const reply = await request('POST', `${at}/approve`, { request_id: requestId, turn_id, decision: 'allow-once' })
      assert.ok(reply.status < 300, JSON.stringify(reply.body))
      await eventually(async () => (await request('GET', LIST)).body.needs_you === 0, 'an empty list')
    }
    await answer(item)
    await request('POST', `${at}/presence`, { visible: true })
    await eventually(async () => (await request('GET', at)).body.session.state === 'active', 'a session at rest')
    const second = await asks()
    await answer(second)
    assert.is(chat.platform.room(ops).length, 1, 'the second question was on a focused surface')
  } finally {
    await chat.close()
  }
})

test('a room is found by name, and a question of a chat session is a reply in that chat', async () => {
  const rooms = [{ group_id: 'C1', display_name: '#Ops' }]
  const chat = await open({ permissions: 'approve-reads', targets: rooms })
  const { request } = chat.world.kernel
  try {
    const named = (canonical_route: string) => ({
      name: 'questions',
      events: ['attention.asked'],
      targets: [{ bridge_id: chat.bridge, canonical_route, delivery_mode: 'reply' }],
      enabled: true,
    })
    const unknown = await request('POST', '/api/notifications/presets', named('op'))
    assert.is(unknown.status, 422, JSON.stringify(unknown.body))
    assert.match(unknown.body.error, /there are group:C1 \(#Ops\)/)
    const made = await request('POST', '/api/notifications/presets', named('#ops'))
    assert.equal(made.body.preset?.targets[0].canonical_route, 'group:C1', JSON.stringify(made.body))
    await chat.say(`ask ${ask}`, { message_id: 'm-1' })
    await chat.reads(texts => texts.some(text => text.includes('wants to: Run the tests')))
    const announced = chat.platform.requests.find(({ text }) => text.includes('wants to: Run the tests'))
    assert.is(announced?.reply_to_message_id, 'm-1')
    const { at } = await chat.world.session('ada')
    await request('POST', `${at}/prompt`, { message: `ask ${ask}` })
    await chat.reads(texts => texts.some(text => text.includes('wants to: Run the tests')), { group_id: 'C1' })
  } finally {
    await chat.close()
  }
})

test('a bridge that needs a login is listed until ready, and an abandoned message until acknowledged', async () => {
  const chat = await open()
  const { request } = chat.world.kernel
  try {
    await chat.platform.host.report(chat.bridge, {
      status: 'auth_required',
      reason: 'auth_failed',
      message: 'token revoked',
    })
    const ids = async () => {
      const { items } = (await request('GET', LIST)).body
      return items.map(({ id }: { id: string }) => id)
    }
    await eventually(async () => (await ids()).includes(`bridge:${chat.bridge}`), 'a bridge in the list')
    await request('POST', `/api/bridges/${chat.bridge}/restart`)
    await eventually(async () => (await ids()).length === 0, 'an empty list')

    await request('POST', '/api/notifications/presets', {
      name: 'notices',
      events: ['task.run_enqueued'],
      targets: [{ bridge_id: chat.bridge }, { bridge_id: chat.bridge, canonical_route: 'group:ops' }],
      enabled: true,
    }).then(({ status }) => assert.is(status, 422, 'the bridge has no default target'))
    await request('POST', '/api/notifications/presets', {
      name: 'notices',
      events: ['task.run_enqueued', 'bridge.*'],
      targets: [{ bridge_id: chat.bridge, canonical_route: 'group:ops' }],
      enabled: true,
    })
    chat.platform.failNext({ permanent: true, kind: 'unknown_destination', message: 'no such room' })
    const { task } = (await request('POST', '/api/tasks', { title: 'Build', scope: 'global' })).body
    await request('POST', `/api/tasks/${task.id}/start`)
    const delivery = await eventually(
      async () => (await ids()).find((id: string) => id.startsWith('delivery:')),
      'a message that was given up in the list',
    )
    const { snapshot } = (await request('GET', LIST)).body
    assert.is((await request('POST', `${LIST}/acknowledge`, { snapshot, id: delivery })).status, 204)
    assert.equal(await ids(), [])
    assert.equal(chat.platform.room(ops), [], 'a bridge is not told of its own failures')
  } finally {
    await chat.close()
  }
})

test.run()
