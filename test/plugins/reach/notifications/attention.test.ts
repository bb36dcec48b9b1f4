import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, surfaceOf } from '../../../../kernel/plugin.js'
import { type AttentionEntry, AttentionSources } from '../../../../plugins/reach/notifications/api.js'
import { MEANINGS } from '../../../../plugins/reach/notifications/dispatch/events.js'
import { type FinishedSession, InboxSources } from '../../../../plugins/work/sessions/api.js'
import type { InboxItem, InboxMishap } from '../../../../schemas/sessions.js'
import { probe } from '../../../../testing/traces.js'
import { bridge, type Scene, scene } from './scene.js'

const LIST = '/api/notifications/attention'
const ACK = `${LIST}/acknowledge`

const list = async (s: Scene, query = '') => (await s.request('GET', `${LIST}${query}`)).body
const ids = async (s: Scene, query = ''): Promise<string[]> =>
  (await list(s, query)).items.map(({ id }: { id: string }) => id)
const ack = async (s: Scene, query = '', id?: string) => {
  const { snapshot } = await list(s, query)
  return s.request('POST', `${ACK}${query}`, { snapshot, ...(id !== undefined && { id }) })
}

const question = (s: Scene | { workspace: string }, more: object = {}): InboxItem => ({
  session_id: 'ses_1',
  agent_name: 'ada',
  workspace_id: s.workspace,
  workspace_path: '/w',
  interaction_id: 'per_1',
  turn_id: 't',
  kind: 'execute',
  title: 'Run the tests',
  command: 'npm test',
  answer: 'svc session approve ses_1 --request per_1',
  created_at: '2030-01-01T00:00:01.000Z',
  expires_at: '2030-01-01T01:00:00.000Z',
  ...more,
})

test('an empty list has counts of zero and a snapshot', async () => {
  const s = await scene()
  const empty = await list(s)
  assert.equal({ ...empty, snapshot: '' }, { finished: 0, needs_you: 0, total: 0, snapshot: '', items: [] })
  assert.match(empty.snapshot, /^[0-9a-f]{32}$/)
  assert.is((await ack(s)).status, 204)
  await s.close()
})

test('questions, approvals, failures, bridges, providers, deliveries and finished sessions share one list', async () => {
  const inbox: InboxItem[] = []
  const finished: FinishedSession[] = []
  const s = await scene({ inbox, finished })
  inbox.push(question(s), question(s, { interaction_id: 'clq_1', kind: 'question', title: 'Which colour?' }))
  const { task } = (
    await s.post('/api/tasks', {
      title: 'Publish',
      scope: 'workspace',
      workspace: s.workspace,
      approval_policy: 'manual',
    })
  ).body
  await s.post(`/api/tasks/${task.id}/publish`)
  const ada = s.agent({ name: 'Docs' })
  const other = (await s.queued({ title: 'Build' })).task
  await s.emitAll([
    { name: 'task.run_failed', payload: { task_id: other, error: 'exit 1' } },
    { name: 'task.budget_exceeded', payload: { task_id: other, reason: 'tokens' } },
    { name: 'bridge.auth_required', payload: { bridge_id: 'team', status: 'auth_required', message: 'token revoked' } },
    {
      name: 'bridge.delivery_failed',
      payload: { bridge_id: 'team', delivery_id: 'dlv_1', reason: 'unknown_after_send' },
    },
    { name: 'provider.rate_limited', payload: { provider: 'anthropic', message: 'try later' } },
    { name: 'automation.run.ended', payload: { id: 'run_1', job_id: 'job_1', status: 'failed', error: 'no agent' } },
    { name: 'session.unhealthy', payload: { id: ada.id, agent_name: 'ada', workspace_id: s.workspace, health: 'x' } },
  ])
  finished.push({ session: { ...(s.agent({ name: 'Done' }) as never as object), ...sessionOf(s) } as never, at: 5 })
  const { items, finished: done, needs_you: needed, total } = await list(s)
  const byId = new Map(items.map((item: { id: string }) => [item.id, item]))
  assert.equal([...byId.keys()].sort(), [
    `approval:${task.id}`,
    'automation:job_1',
    'bridge:team',
    `budget:${other}`,
    'delivery:dlv_1',
    'finished:ses_done',
    'provider:anthropic',
    'question:ses_1:clq_1',
    'question:ses_1:per_1',
    `session:${ada.id}`,
    `task:${other}`,
  ])
  assert.equal([done, needed, total], [1, 10, 11])
  const shown = (id: string) => {
    const { kind, request_kind: request, title, detail, command } = byId.get(id) as Record<string, string>
    return { kind, request, title, detail, command }
  }
  assert.equal(shown('question:ses_1:per_1'), {
    kind: 'permission',
    request: 'decide',
    title: 'Run the tests',
    detail: 'npm test',
    command: 'svc session approve ses_1 --request per_1',
  })
  assert.equal(shown('question:ses_1:clq_1').kind, 'question')
  assert.equal(shown(`task:${other}`), {
    kind: 'failure',
    request: 'review',
    title: `Task run failed: Build (${other})`,
    detail: 'exit 1',
    command: `svc task get ${other}`,
  })
  assert.equal(shown('delivery:dlv_1').request, 'resend')
  assert.equal(shown('bridge:team').request, 'login')
  assert.equal(
    items.map(({ item_index: at }: { item_index: number }) => at),
    items.map((_: unknown, at: number) => at),
  )
  assert.is((byId.get('question:ses_1:per_1') as { workspace_label: string }).workspace_label, 'w')
  await s.close()
})

const sessionOf = (s: Scene) => ({
  id: 'ses_done',
  name: 'Done',
  type: 'user',
  agentName: 'ada',
  workspaceId: s.workspace,
  state: 'active',
  provider: 'local',
  createdAt: 1,
  updatedAt: 1,
})

test('counts, snapshot and acknowledgment cover all waiting tasks, beyond the rows of a reply', async () => {
  const s = await scene()
  const approval = { title: 'Publish', scope: 'global', approval_policy: 'manual' }
  for (let n = 0; n < 120; n++) await s.post('/api/tasks', approval)
  const { total, needs_you: needed, items, notes } = await list(s)
  assert.equal([total, needed, items.length], [120, 120, 100])
  assert.equal(notes, ['the newest 100 of 120'])
  assert.match(items[0].command, `svc task approve ${items[0].task_id}`)
  assert.is((await ack(s)).status, 204)
  assert.is((await list(s)).total, 0)
  await s.post('/api/tasks', approval)
  assert.is((await list(s)).total, 1)
  await s.close()
})

test('a degraded bridge is listed until ready or disabled, a message until resent or discarded', async () => {
  const s = await scene()
  const degraded = { name: 'bridge.degraded', payload: { bridge_id: 'team', status: 'degraded', message: 'no route' } }
  const lost = (id: string) => ({
    name: 'bridge.delivery_failed',
    payload: { bridge_id: 'team', delivery_id: id, reason: 'rejected' },
  })
  await s.emitAll([degraded, lost('dlv_1'), lost('dlv_2')])
  assert.equal((await ids(s)).sort(), ['bridge:team', 'delivery:dlv_1', 'delivery:dlv_2'])
  s.bridges.failed.delete('dlv_1')
  assert.equal((await ids(s)).sort(), ['bridge:team', 'delivery:dlv_2'])
  s.bridges.known.set('team', bridge('team', { status: 'disabled' }))
  assert.equal(await ids(s), ['delivery:dlv_2'])
  s.bridges.known.set('team', bridge('team', { status: 'ready' }))
  await s.emit('bridge.ready', { bridge_id: 'team', status: 'ready' })
  assert.equal(await ids(s), ['delivery:dlv_2'])
  await s.close()
})

test('a recovered item leaves the list by itself', async () => {
  const s = await scene()
  const ada = s.agent()
  const session = { id: ada.id, agent_name: 'ada', workspace_id: s.workspace, health: 'x' }
  const job = { id: 'run_1', job_id: 'job_1' }
  await s.emitAll([
    { name: 'bridge.error', payload: { bridge_id: 'team', status: 'error' } },
    { name: 'provider.auth_required', payload: { provider: 'anthropic' } },
    { name: 'automation.run.ended', payload: { ...job, status: 'failed' } },
    { name: 'session.hung', payload: session },
    { name: 'task.run_failed', payload: { task_id: 'task_1' } },
  ])
  assert.is((await list(s)).total, 5)
  await s.emit('automation.run.ended', { ...job, status: 'canceled' })
  assert.is((await list(s)).total, 5, 'a canceled run says nothing of the job')
  await s.emitAll([
    { name: 'bridge.ready', payload: { bridge_id: 'team', status: 'ready' } },
    { name: 'provider.recovered', payload: { provider: 'anthropic' } },
    { name: 'automation.run.ended', payload: { ...job, status: 'completed' } },
    { name: 'session.recovered', payload: session },
    { name: 'task.run_enqueued', payload: { task_id: 'task_1' } },
  ])
  assert.equal(await ids(s), [])
  await s.emit('automation.run.ended', { ...job, status: 'failed' })
  await s.emit('record.deleted', { kind: 'automation.job', id: 'job_1', version: 2 })
  assert.equal(await ids(s), [], 'a job that is deleted cannot run again')
  await s.close()
})

test('failed or missed jobs and expired questions are in inbox, status and doctor until seen', async () => {
  const inside = probe({})
  const s = await scene({ plugins: [inside.plugin] })
  const ada = s.agent({ name: 'Docs' })
  const other = s.agent({ id: 'ses_other', name: 'Other' })
  const expired = {
    item_id: 'question:x',
    title: 'Docs wants to: rm -rf dist',
    agent_name: 'ada',
    workspace_id: s.workspace,
  }
  const run = (id: string, job: string, status: string, error: string, more = {}) => ({
    name: 'automation.run.ended',
    payload: { id, job_id: job, status, error, ...more },
  })
  await s.emitAll([
    run('run_1', 'job_1', 'failed', 'agent_crashed: exit 1'),
    run('run_2', 'job_2', 'canceled', 'misfire_grace_exceeded: due at 2:00, the daemon was not running'),
    run('run_3', 'job_3', 'canceled', 'fire_limit: already ran 2 times'),
    { name: 'attention.expired', payload: { ...expired, session_id: other.id } },
    run('run_4', 'job_4', 'failed', 'question_expired: 1 question expired without an answer', { session_id: other.id }),
  ])
  const question = { request_id: 'per_1', title: 'rm -rf dist' }
  await s.record(ada, { ...question, status: 'pending' }, 'permission')
  await s.record(
    ada,
    { request_id: 'per_1', status: 'resolved', decision: 'reject-once', resolved_by: 'timeout' },
    'permission',
  )
  const look = async () => {
    const status = (await s.request('GET', '/api/status')).body.attention
    const { items } = (await s.request('GET', '/api/doctor?only=notifications')).body
    const found = items.filter(({ severity }: { severity: string }) => severity === 'warning')
    const inbox = inside
      .kernel()
      .collect(InboxSources)
      .flatMap(({ entry }) => [...entry.read()]) as InboxMishap[]
    return { status, doctor: found.map(({ id, code }: { id: string; code: string }) => `${code} ${id}`).sort(), inbox }
  }
  const first = await look()
  assert.equal(first.status, {
    failed: 1,
    missed: 1,
    expired: 2,
    summary: '1 job failed, 1 job was not run, 2 questions expired: svc inbox',
  })
  assert.equal(first.doctor, [
    'automation_run_missed attention.automation:job_2',
    'question_expired attention.automation:job_4',
    `question_expired attention.expired:${ada.id}`,
  ])
  assert.equal(first.inbox.map(({ item_id: id, kind }) => [id, kind]).sort(), [
    ['automation:job_1', 'failed'],
    ['automation:job_2', 'missed'],
    ['automation:job_4', 'expired'],
    [`expired:${ada.id}`, 'expired'],
  ])
  assert.is(
    first.inbox.find(({ session_id: id }) => id === ada.id)?.title,
    'Not answered in time: Docs wants to: rm -rf dist',
  )
  assert.equal((await ids(s)).length, 4, 'each is in the list of attention once')

  const ended = { severity: 'warning', error: 'misfire_grace_exceeded: x', status: 'canceled' }
  const titleOf = (payload: object) =>
    MEANINGS['automation.run.ended']?.title({ subject: 's', payload: { ...ended, ...payload } } as never)
  assert.equal(
    [titleOf({ job_id: 'j' }), titleOf({ trigger_id: 't' })],
    ['Job was not run: s', 'Trigger was not run: s'],
  )

  await s.emit('automation.run.ended', { id: 'run_5', job_id: 'job_1', status: 'completed' })
  assert.is((await ack(s, '', 'automation:job_2')).status, 204)
  assert.equal((await look()).status, { expired: 2, summary: '2 questions expired: svc inbox' })
  assert.is((await ack(s)).status, 204)
  const last = await look()
  assert.equal([last.status, last.doctor, last.inbox], [{}, [], []])
  await s.emit('automation.run.ended', run('run_6', 'job_2', 'canceled', 'misfire_grace_exceeded: again').payload)
  assert.is((await look()).status.missed, 1, 'the next miss is another one')
  await s.close()
})

test('a failed task leaves the list when acknowledged and returns when it fails again', async () => {
  const s = await scene()
  const { task, run } = await s.queued()
  await s.post(`/api/runs/${run}/fail`, { error: 'exit 1' }).catch(() => {})
  await s.emit('task.run_failed', { task_id: task, run_id: run, error: 'exit 1' })
  const [before] = (await list(s)).items
  assert.is(before.id, `task:${task}`)
  assert.is((await ack(s, '', before.id)).status, 204)
  assert.equal(await ids(s), [])
  await s.emit('task.run_failed', { task_id: task, run_id: run, error: 'exit 2' })
  const [after] = (await list(s)).items
  assert.is(after.id, before.id)
  assert.ok(after.generation > before.generation)
  assert.is((await s.request('DELETE', `/api/tasks/${task}`)).status < 500, true)
  await s.close()
})

test('an old snapshot, a snapshot of another list and an unknown item are refused', async () => {
  const s = await scene()
  await s.emit('task.run_failed', { task_id: 'task_1' })
  const { snapshot } = await list(s)
  await s.emit('task.run_failed', { task_id: 'task_2' })
  const refused = async (body: object, query = '') => {
    const reply = await s.request('POST', `${ACK}${query}`, body)
    return [reply.status, reply.body?.code]
  }
  assert.equal(await refused({ snapshot }), [409, 'attention_changed'])
  const now = (await list(s)).snapshot
  assert.equal(await refused({ snapshot: now }, '?surface=home'), [409, 'attention_changed'])
  assert.equal(await refused({ snapshot: now }, '?profile=ada'), [409, 'attention_changed'])
  assert.equal(await refused({ snapshot: now }, '?workspace='), [409, 'attention_changed'])
  assert.equal(await refused({ snapshot: now, id: 'task:none' }), [409, 'attention_item_unknown'])
  assert.is((await refused({ snapshot: now }, '?profile=ada&all_profiles=true'))[0], 400)
  assert.is((await list(s)).total, 2)
  assert.equal(await refused({ snapshot: now }), [204, undefined])
  assert.is((await list(s)).total, 0)
  await s.close()
})

test('receipts are kept for each profile and surface', async () => {
  const s = await scene()
  await s.emit('task.run_failed', { task_id: 'task_1' })
  assert.is((await ack(s, '?profile=ada')).status, 204)
  assert.equal(await ids(s, '?profile=ada'), [])
  assert.equal(await ids(s, '?profile=ada&surface=home'), ['task:task_1'])
  assert.equal(await ids(s), ['task:task_1'])
  assert.equal(await ids(s, '?receipt_profile=ada'), [])
  const { items } = await list(s, '?all_profiles=true')
  assert.equal(
    items.map(({ id, badge }: { id: string; badge: string }) => [id, badge]),
    [['task:task_1', 'default']],
  )
  assert.is((await ack(s, '?all_profiles=true')).status, 204)
  assert.equal(await ids(s, '?all_profiles=true'), [])
  assert.equal(await ids(s), [])
  await s.close()
})

test('receipts survive a restart', async () => {
  const s = await scene()
  await s.emitAll([
    { name: 'provider.unavailable', payload: { provider: 'a' } },
    { name: 'provider.unavailable', payload: { provider: 'b' } },
  ])
  await ack(s, '', 'provider:a')
  const next = await s.killed()
  assert.equal(await ids(next), ['provider:b'])
  await next.close()
})

test('a workspace filters its items, and an empty filter selects those without one', async () => {
  const s = await scene()
  await s.emitAll([
    { name: 'task.run_failed', payload: { task_id: 'task_1' }, scope: s.workspace },
    { name: 'task.run_failed', payload: { task_id: 'task_2' } },
  ])
  assert.equal(await ids(s, '?workspace=w'), ['task:task_1'])
  assert.equal(await ids(s, '?workspace='), ['task:task_2'])
  assert.is((await s.request('GET', `${LIST}?workspace=ws_none`)).status, 404)
  assert.is((await s.request('GET', `${LIST}?profile=No%20Name`)).status, 400)
  await s.close()
})

test('a reply has 100 rows, and its counts and snapshot cover the whole list', async () => {
  const s = await scene()
  const events = Array.from({ length: 150 }, (_, n) => ({ name: 'task.run_failed', payload: { task_id: `task_${n}` } }))
  await s.emitAll(events)
  const before = await list(s)
  assert.equal([before.items.length, before.total, before.needs_you], [100, 150, 150])
  await s.emit('task.run_failed', { task_id: 'task_0' })
  const after = await list(s)
  assert.is.not(after.snapshot, before.snapshot)
  assert.is((await ack(s)).status, 204)
  assert.is((await list(s)).total, 0)
  await s.close()
})

test('a plugin contributes attention, and a failing source hides nothing', async () => {
  const { contribute } = surfaceOf()
  let entries: AttentionEntry[] = []
  const plugin = definePlugin({ name: 'acme.water', version: '1.0.0' }).surface({
    registries: [
      contribute(AttentionSources, () => [
        { name: 'acme', read: () => entries },
        {
          name: 'broken',
          read: () => {
            throw new Error('no water')
          },
        },
      ]),
    ],
  })
  const s = await scene({ plugins: [plugin] })
  entries = [
    {
      id: 'plant',
      kind: 'notice',
      sourceId: 'plant',
      generation: 7,
      occurredAt: 1000,
      title: ' Water\u0007 the\nplant ',
    },
  ]
  const { items, needs_you: needed } = await list(s)
  assert.equal([items[0].id, items[0].title, items[0].generation, needed], ['acme:plant', 'Water the plant', 7, 1])
  await s.close()
})

test('an agent notifies users at a limited rate', async () => {
  const s = await scene()
  const ada = s.agent({ agentName: 'ada' })
  await s.preset('notices', { events: ['agent.notice'] })
  const notify = (body: object) => ada.ask('POST', '/api/agent/notify', body)
  const first = await notify({ title: 'The docs\nare built', body: 'See `out/`' })
  assert.equal([first.status, first.body], [200, { outcome: 'delivered' }])
  for (let n = 0; n < 4; n++) assert.is((await notify({ title: `notice ${n}` })).body.outcome, 'delivered')
  const limited = await notify({ title: 'one more' })
  assert.equal([limited.status, limited.body.outcome], [200, 'rate_limited'])
  assert.ok(limited.body.retry_after_ms > 0 && limited.body.retry_after_ms <= 30_000)
  await s.pass(30_000)
  assert.is((await notify({ title: 'later' })).body.outcome, 'delivered')
  await s.settle()
  assert.is(s.texts().length, 6)
  assert.match(s.texts()[0] ?? '', /^ada: The docs are built\nSee `out\/`\n`svc session status ses_/)
  const { items, finished, needs_you: needed } = await list(s)
  assert.equal([items.length, finished, needed], [6, 6, 0])
  assert.equal([items.at(-1).kind, items.at(-1).agent_name, items.at(-1).workspace_id], ['notice', 'ada', s.workspace])

  assert.is((await notify({ title: ' \u200b ' })).status, 422)
  assert.is((await notify({ title: 'x'.repeat(201) })).status, 422)
  assert.is((await notify({ body: 'no title' })).status, 422)
  assert.is((await notify({ title: 'x', body: 'y'.repeat(4001) })).status, 422)
  assert.is((await s.request('POST', '/api/agent/notify', { title: 'x' })).status, 401)
  await s.close()
})

test('a question is announced when asked, and once more without an answer', async () => {
  const inbox: InboxItem[] = []
  const s = await scene({ inbox })
  const ada = s.agent({ name: 'Docs' })
  await s.preset('questions', { events: ['attention.asked'], rules: { remind_after: '15m' } })
  const asks = async (request: string) => {
    inbox.push(question(s, { session_id: ada.id, interaction_id: request }))
    await s.record(ada, { request_id: request, status: 'pending', title: 'Run the tests', kind: 'execute' } as never)
    await s.settle()
  }
  await asks('per_1')
  await asks('per_2')
  assert.is(s.texts().length, 2)
  assert.is(s.texts()[0], `Docs wants to: Run the tests\n\`svc session approve ${ada.id} --request per_1\``)
  await s.record(ada, { request_id: 'per_1', status: 'resolved' } as never)
  inbox.shift()
  await s.pass(16 * 60_000)
  await s.settle()
  assert.equal(s.texts().slice(2), [
    `Still waiting: Docs wants to: Run the tests\n\`svc session approve ${ada.id} --request per_2\``,
  ])
  await s.pass(60 * 60_000)
  await s.settle()
  assert.is(s.texts().length, 3)
  await s.close()
})

test.run()
