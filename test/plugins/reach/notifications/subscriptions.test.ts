import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { bridge, fakeBridges, type Scene, scene } from './scene.js'

const at = (task: string, id = '') => `/api/tasks/${task}/notifications/bridges${id && `/${id}`}`
const body = { bridge_instance_id: 'team', delivery_mode: 'direct-send', scope: 'global', group_id: 'ops' }

const subscribe = async (s: Scene, task: string, more: object = {}) => {
  const reply = await s.post(at(task), { ...body, ...more })
  assert.is(reply.status, 201, JSON.stringify(reply.body))
  return reply.body.subscription
}

test('a room gets one message when a task ends', async () => {
  const s = await scene()
  const { task, run } = await s.queued({ title: 'Build' })
  const made = await subscribe(s, task)
  assert.equal(made.cursor.last_delivered_at, null)
  assert.equal([made.task_id, made.group_id, made.created_by.kind], [task, 'ops', 'human'])
  const ada = s.agent()
  await ada.claim()
  await s.settle()
  assert.equal(s.texts(), [], 'it has not ended')
  await ada.act('complete', run, { result: { text: 'done' } })
  await s.settle()
  assert.equal(s.texts(), [`Task completed: Build (${task})\n\`svc task get ${task}\``])
  assert.equal(s.bridges.posted()[0]?.target, { group_id: 'ops' })
  const read = async () => (await s.request('GET', at(task, made.subscription_id))).body.subscription.cursor
  const queued = await read()
  assert.ok(queued.last_sequence > made.cursor.last_sequence)
  assert.is(queued.last_error, undefined)
  await s.pass(11_000)
  assert.match((await read()).last_error, /not delivered within 10 s/)
  await s.bridges.end(queued.last_delivery_id, { state: 'delivered' })
  const delivered = await read()
  assert.ok(delivered.last_delivered_at)
  assert.is(delivered.last_error, undefined)
  const next = await s.killed()
  await next.settle()
  assert.is(next.texts().length, 1)
  await next.close()
})

test('a canceled or failed task is announced too, and a failing bridge is retried', async () => {
  const s = await scene()
  const { task } = await s.queued({ title: 'Build' })
  await subscribe(s, task)
  s.bridges.failing.set('team', new Error('not now'))
  await s.post(`/api/tasks/${task}/cancel`, { reason: 'no longer needed' })
  await s.settle()
  const [row] = (await s.request('GET', at(task))).body.subscriptions
  assert.is(row.cursor.last_error, 'not now')
  const next = await s.killed()
  s.bridges.failing.clear()
  await next.pass(60_000)
  await next.settle()
  assert.equal(
    next.texts().map(text => text.split('\n')[0]),
    [`Task canceled: Build (${task})`],
  )
  await next.close()
})

test('a repeated subscription with the same id and content is the first one', async () => {
  const s = await scene()
  const { task } = await s.queued()
  const first = await subscribe(s, task, { subscription_id: 'mine' })
  assert.equal(await subscribe(s, task, { subscription_id: 'mine' }), first)
  const other = await s.post(at(task), { ...body, subscription_id: 'mine', group_id: 'dev' })
  assert.equal([other.status, other.body.code], [409, 'subscription_exists'])
  await s.close()
})

test('subscriptions are listed, filtered and removed, and deleted with their task', async () => {
  const s = await scene()
  const { task, run } = await s.queued()
  const first = await subscribe(s, task)
  await subscribe(s, task, { bridge_instance_id: 'other', peer_id: 'ada' })
  const count = async (query = '') => (await s.request('GET', `${at(task)}${query}`)).body.subscriptions.length
  assert.equal([await count(), await count('?bridge_instance_id=other'), await count('?limit=1')], [2, 1, 1])
  assert.equal([await count('?scope=workspace'), await count('?scope=global')], [0, 2])
  assert.is((await s.request('DELETE', at(task, first.subscription_id))).status, 204)
  assert.equal((await s.request('GET', at(task, first.subscription_id))).body.code, 'subscription_not_found')
  assert.equal((await s.request('DELETE', at(task, first.subscription_id))).body.code, 'subscription_not_found')
  await s.post(`/api/runs/${run}/cancel`, { reason: 'x' })
  await s.post(`/api/tasks/${task}/cancel`, { reason: 'x' })
  assert.is((await s.request('DELETE', `/api/tasks/${task}`)).status, 204)
  await s.pass(1000)
  assert.is((await s.request('GET', at(task))).status, 404)
  await s.close()
})

test('an invalid subscription is refused', async () => {
  const bridges = fakeBridges('team')
  bridges.known.set('mute', bridge('mute', { defaultTarget: undefined }))
  bridges.known.set('ours', bridge('ours', { workspaceId: 'ws_other' }))
  const s = await scene({ bridges })
  const { task } = await s.queued()
  const refusals: readonly (readonly [object, number, string])[] = [
    [{ bridge_instance_id: 'gone' }, 404, 'bridge_not_found'],
    [{ bridge_instance_id: 'mute', group_id: undefined }, 400, 'subscription_invalid'],
    [{ bridge_instance_id: 'ours' }, 400, 'subscription_invalid'],
    [{ group_id: undefined, thread_id: 't' }, 400, 'subscription_invalid'],
    [{ scope: 'workspace' }, 400, 'subscription_invalid'],
    [{ workspace_id: s.workspace }, 400, 'subscription_invalid'],
    [{ scope: 'workspace', workspace_id: 'nowhere' }, 404, 'workspace_not_found'],
  ]
  for (const [more, status, code] of refusals) {
    const reply = await s.post(at(task), { ...body, ...more })
    assert.equal([reply.status, reply.body.code], [status, code], JSON.stringify(more))
  }
  assert.is((await s.post(at('task_none'), body)).status, 404)
  assert.equal((await s.request('GET', at(task))).body.subscriptions, [])
  await s.close()
})

test.run()
