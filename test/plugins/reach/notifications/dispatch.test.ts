import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Tasks } from '../../../../plugins/work/tasks/api.js'
import { probe } from '../../../../testing/traces.js'
import { bridge, fakeBridges, scene } from './scene.js'

const MINUTE = 60_000
const failed = (task: string, more: object = {}) => ({ task_id: task, error: 'exit code 1', ...more })

test('an event becomes one message per target with a readable text', async () => {
  const s = await scene()
  const { task, run } = await s.queued({ title: 'Deploy the docs' })
  await s.preset('failures', {
    events: ['task.run_failed'],
    targets: [{ bridge_id: 'team' }, { bridge_id: 'other', canonical_route: 'peer:ada' }],
  })
  await s.emit('task.run_failed', failed(task, { run_id: run }))
  await s.emit('task.run_completed', { task_id: task, run_id: run })
  await s.settle()
  const text = `Task run failed: Deploy the docs (${task})\nexit code 1\n\`svc task run show ${run}\``
  assert.equal(s.texts('team'), [text])
  assert.equal(s.texts('other'), [text])
  const [first, second] = s.bridges.posted()
  assert.equal([first?.target, second?.target], [{ group_id: 'general' }, { peer_id: 'ada' }])
  assert.is(first?.source, 'preset:failures')
  assert.match(first?.key ?? '', /^preset:failures:target:[0-9a-f]{16}:evt_/)
  await s.close()
})

test('a filter chooses by severity, workspace, agent, task, run, provider and type', async () => {
  const s = await scene()
  const ada = s.agent({ agentName: 'ada', provider: 'anthropic' })
  const cases: readonly (readonly [string, boolean])[] = [
    ['severity >= error', true],
    ['severity > error', false],
    ['severity < error', false],
    ['severity = error AND event_type = session.unhealthy', true],
    ['workspace = w', true],
    [`workspace = ${s.workspace}`, true],
    ['workspace != w', false],
    ['agent = ada AND provider = anthropic', true],
    ['agent = bob OR (provider = anthropic AND severity != info)', true],
    ['task = task_1', false],
    ['task != task_1', true],
    ['run = x', false],
  ]
  for (const [n, [filter]] of cases.entries())
    await s.preset(`p${n}`, {
      events: ['session.*'],
      filter,
      targets: [{ bridge_id: 'team', canonical_route: `group:${n}` }],
    })
  await s.emit(
    'session.unhealthy',
    { id: ada.id, agent_name: 'ada', workspace_id: s.workspace, reason: 'it crashed' },
    {
      scope: s.workspace,
    },
  )
  await s.settle()
  const sent = new Set(s.bridges.posted().map(({ target }) => target.group_id))
  for (const [n, [filter, expected]] of cases.entries()) assert.is(sent.has(`${n}`), expected, filter)
  await s.close()
})

test('a disabled preset sends nothing, and an enabled one sends later events', async () => {
  const s = await scene()
  await s.preset('late', { enabled: false })
  await s.emit('task.run_failed', failed('task_1'))
  await s.settle()
  await s.request('PUT', '/api/notifications/presets/late/enablement', { enabled: true, profile: 'default' })
  await s.emit('task.run_failed', failed('task_2'))
  await s.settle()
  assert.equal(
    s.texts().map(text => /task_\d/.exec(text)?.[0]),
    ['task_2'],
  )
  await s.request('PUT', '/api/notifications/presets/late/enablement', { enabled: false, profile: 'default' })
  await s.emit('task.run_failed', failed('task_3'))
  await s.settle()
  assert.is(s.texts().length, 1)
  await s.close()
})

test('a failing target delays no other, is retried, and loses nothing', async () => {
  const s = await scene()
  await s.preset('both', { targets: [{ bridge_id: 'team' }, { bridge_id: 'other' }] })
  s.bridges.failing.set('team', new Error('the queue of team is full'))
  for (const id of ['task_1', 'task_2', 'task_3']) await s.emit('task.run_failed', failed(id))
  await s.settle()
  assert.equal([s.texts('team').length, s.texts('other').length], [0, 3])
  const { preset } = (await s.request('GET', '/api/notifications/presets/both')).body
  const state = preset.target_states.find((one: { bridge_id: string }) => one.bridge_id === 'team')
  assert.equal(state.last_error, 'the queue of team is full')
  const { items } = (await s.request('GET', '/api/doctor')).body
  assert.ok(items.some((item: { code: string }) => item.code === 'preset_delivery_failing'))
  s.bridges.failing.clear()
  await s.pass(10 * MINUTE)
  await s.settle()
  assert.equal(
    s.texts('team').map(text => /task_\d/.exec(text)?.[0]),
    ['task_1', 'task_2', 'task_3'],
  )
  assert.is(s.texts('other').length, 3)
  await s.close()
})

test('a suppressing or missing bridge does not stop the cursor', async () => {
  const bridges = fakeBridges('team')
  const s = await scene({ bridges })
  await s.preset('p')
  bridges.known.set('team', bridge('team', { notificationSuppress: true }))
  await s.emit('task.run_failed', failed('task_1'))
  await s.settle()
  bridges.known.delete('team')
  await s.emit('task.run_failed', failed('task_2'))
  await s.settle()
  const gone = (await s.request('GET', '/api/notifications/presets/p')).body.preset.target_states[0]
  assert.match(gone.last_error, /no longer exists/)
  const { items } = (await s.request('GET', '/api/doctor')).body
  assert.ok(items.some((item: { code: string }) => item.code === 'preset_target_unresolved'))
  bridges.known.set('team', bridge('team'))
  await s.emit('task.run_failed', failed('task_3'))
  await s.settle()
  assert.equal(
    s.texts().map(text => /task_\d/.exec(text)?.[0]),
    ['task_3'],
  )
  await s.close()
})

test('a bridge gets no message about itself or about preset messages', async () => {
  const s = await scene()
  await s.preset('bridges', { events: ['bridge.*'], targets: [{ bridge_id: 'team' }, { bridge_id: 'other' }] })
  await s.emit('bridge.delivery_failed', { bridge_id: 'team', delivery_id: 'd1', reason: 'no such room' })
  await s.settle()
  assert.equal([s.texts('team').length, s.texts('other').length], [0, 1])
  const ours = { bridge_id: 'team', delivery_id: 'd2', reason: 'no such room', source: 'preset:bridges' }
  await s.emit('bridge.delivery_failed', ours)
  await s.settle()
  assert.is(s.texts('other').length, 1)
  await s.close()
})

test('an item shown on a focused surface is not sent; recent activity alone does not count', async () => {
  const watched = new Set<string>()
  const s = await scene({ watched })
  const ada = s.agent()
  const event = { id: ada.id, agent_name: 'ada', workspace_id: s.workspace, health: 'hung' }
  await s.preset('health', { events: ['session.*'] })
  await s.emit('session.hung', event)
  await s.settle()
  watched.add(ada.id)
  await s.emit('session.unhealthy', event)
  await s.settle()
  assert.is(s.texts().length, 1)
  assert.match(s.texts()[0] ?? '', /unresponsive/)
  await s.close()
})

test('repeated failures of one subject are sent after a threshold', async () => {
  const s = await scene()
  await s.preset('third', { rules: { after_failures: 3, subjects: { task_9: { after_failures: 1 } } } })
  const happened = async (name: string, task: string) => {
    await s.emit(name, { task_id: task })
    await s.settle()
  }
  for (let n = 0; n < 2; n++) await happened('task.run_failed', 'task_1')
  await happened('task.run_failed', 'task_2')
  assert.equal(s.texts(), [])
  await happened('task.run_completed', 'task_1')
  assert.equal(s.texts(), [], 'a recovery from failures that were not sent is not sent')
  for (let n = 0; n < 3; n++) await happened('task.run_failed', 'task_1')
  assert.is(s.texts().length, 1)
  await happened('task.run_completed', 'task_1')
  assert.is(s.texts().length, 2)
  await happened('task.run_failed', 'task_9')
  assert.is(s.texts().length, 3)
  await s.close()
})

test('failure counts survive a change of the targets', async () => {
  const s = await scene()
  await s.preset('third', { rules: { after_failures: 3, cooldown: '10m' } })
  const fails = async () => {
    await s.emit('task.run_failed', { task_id: 'task_1' })
    await s.settle()
  }
  await fails()
  await fails()
  const url = '/api/notifications/presets/third'
  const changed = await s.request('PUT', url, { targets: [{ bridge_id: 'team', canonical_route: 'group:ops' }] })
  assert.is(changed.status, 200)
  await fails()
  assert.is(s.texts().length, 1, 'the third failure')
  assert.is((await s.request('PUT', url, { targets: [{ bridge_id: 'other' }] })).status, 200)
  await fails()
  assert.is(s.texts('other').length, 1, 'a new room was sent nothing before, so it has no cooldown')
  await s.close()
})

test('a reply to a conversation is sent there if the target wants replies, any other message to its route', async () => {
  const look = probe({ tasks: Tasks })
  const s = await scene({ plugins: [look.plugin] })
  const ada = s.agent()
  const target = { bridge_id: 'team', canonical_route: 'group:ops' }
  const targets = [{ ...target, delivery_mode: 'reply' }, { bridge_id: 'other' }]
  await s.preset('replies', { events: ['task.run_failed'], targets })
  const actor = { ...look.kernel().actor, onBehalfOf: { kind: 'agent_session', id: ada.id } }
  const { task } = await look.kernel().needs.tasks.submit(actor, { title: 'Docs', scope: 'global' } as never)
  const other = (await s.post('/api/tasks', { title: 'Build', scope: 'global' })).body.task
  s.bridges.conversations.set(`team ${ada.id}`, { target: { peer_id: 'ann' }, messageId: 'm7' })
  for (const id of [task.id, other.id]) await s.emit('task.run_failed', { task_id: id, error: 'exit 1' })
  await s.settle()
  const places = (wanted: string) =>
    s.bridges.posted().flatMap(({ bridge: of, target: to, replyTo }) => (of === wanted ? [[to, replyTo]] : []))
  assert.equal(places('team'), [
    [{ peer_id: 'ann' }, 'm7'],
    [{ group_id: 'ops' }, ''],
  ])
  assert.equal(places('other'), [
    [{ group_id: 'general' }, ''],
    [{ group_id: 'general' }, ''],
  ])
  await s.close()
})

test('cooldown and only_on_change apply per subject', async () => {
  const s = await scene()
  await s.preset('cool', { events: ['task.run_failed'], rules: { cooldown: '10m' } })
  await s.preset('change', { targets: [{ bridge_id: 'other' }], rules: { only_on_change: true } })
  const happened = async (name: string, task: string) => {
    await s.emit(name, { task_id: task })
    await s.settle()
  }
  await happened('task.run_failed', 'task_1')
  await happened('task.run_failed', 'task_1')
  await happened('task.run_failed', 'task_2')
  assert.equal([s.texts('team').length, s.texts('other').length], [2, 2])
  await s.pass(11 * MINUTE)
  await happened('task.run_failed', 'task_1')
  assert.equal([s.texts('team').length, s.texts('other').length], [3, 2])
  await happened('task.run_completed', 'task_1')
  await happened('task.run_failed', 'task_1')
  assert.is(s.texts('other').length, 4)
  await s.close()
})

test('messages wait in quiet hours, and one message summarizes them', async () => {
  // The clock of the test starts at midnight UTC, 01:00 in Berlin.
  const s = await scene()
  const quiet = { from: '22:00', to: '07:00', time_zone: 'Europe/Berlin' }
  await s.preset('night', { rules: { quiet_hours: quiet } })
  for (const id of ['task_1', 'task_2']) await s.emit('task.run_failed', failed(id))
  await s.settle()
  assert.equal(s.texts(), [])
  await s.pass(5 * 60 * MINUTE)
  await s.settle()
  assert.equal(s.texts(), [], 'it is 06:00 there')
  await s.pass(61 * MINUTE)
  await s.settle()
  assert.equal(s.texts(), ['2 events in quiet hours\n- Task run failed: task_1\n- Task run failed: task_2'])
  await s.emit('task.run_failed', failed('task_3'))
  await s.settle()
  assert.is(s.texts().length, 2)
  await s.close()
})

test('a kill between two messages repeats and loses none', async () => {
  const s = await scene()
  await s.preset('p')
  await s.emit('task.run_failed', failed('task_1'))
  await s.settle()
  s.bridges.failing.set('team', new Error('not now'))
  await s.emit('task.run_failed', failed('task_2'))
  await s.settle()
  const next = await s.killed()
  s.bridges.failing.clear()
  await next.pass(10 * MINUTE)
  await next.settle()
  assert.equal(
    next.texts().map(text => /task_\d/.exec(text)?.[0]),
    ['task_1', 'task_2'],
  )
  await next.close()
})

test('texts contain no secret, no control characters and only needed data', async () => {
  const s = await scene()
  await s.preset('p')
  await s.emit('task.run_failed', failed('task_1', { error: `a\u0000b\u202e\n${'x'.repeat(5000)}` }))
  await s.settle()
  const [text = ''] = s.texts()
  assert.ok(text.length < 900, `${text.length} characters`)
  assert.equal(
    ['\u0000', '\u202e'].filter(character => text.includes(character)),
    [],
  )
  await s.close()
})

test.run()
