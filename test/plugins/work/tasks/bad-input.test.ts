import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Reply } from '../../../harness/kernel.js'
import { type Scene, scene } from './scene.js'

const test = suite<{ world: Scene }>('invalid task requests')
test.before.each(async context => {
  context.world = await scene()
})
test.after.each(({ world }) => world.close())

const KIB = 1024
const text = (length: number) => 'x'.repeat(length)
const FUTURE = '2031-01-01T00:00:00Z'

/** What is sent, and the answer: its status, its code, and a word of its text that says where the fault is. */
type Rule = readonly [method: string, url: string, body: object | undefined, answer: string, where: string]

/** `:task` is one with a queued run, `:run` that run, `:done` a completed one, `:over` its run, `:free` one without. */
const RULES: readonly Rule[] = [
  ['POST', '/api/tasks', { scope: 'global' }, '422 unprocessable', 'title'],
  ['POST', '/api/tasks', { title: ' ', scope: 'global' }, '422 task_invalid', 'title'],
  ['POST', '/api/tasks', { title: text(501), scope: 'global' }, '422 task_invalid', 'title'],
  ['POST', '/api/tasks', { title: 't' }, '422 unprocessable', 'scope'],
  ['POST', '/api/tasks', { title: 't', scope: 'elsewhere' }, '422 unprocessable', 'scope'],
  ['POST', '/api/tasks', { title: 't', scope: 'global', workspace: 'w' }, '422 task_invalid', 'workspace'],
  ['POST', '/api/tasks', { title: 't', scope: 'workspace' }, '422 task_invalid', 'workspace'],
  ['POST', '/api/tasks', { title: 't', scope: 'workspace', workspace: 'none' }, '404 workspace_not_found', 'none'],
  ['POST', '/api/tasks', { title: 't', scope: 'global', id: '../x' }, '422 task_invalid', 'id'],
  ['POST', '/api/tasks', { title: 't', scope: 'global', id: ':task' }, '409 task_exists', ':task'],
  ['POST', '/api/tasks', { title: 't', scope: 'global', priority: 'soon' }, '422 unprocessable', 'priority'],
  ['POST', '/api/tasks', { title: 't', scope: 'global', max_attempts: 0 }, '422 task_invalid', 'max_attempts'],
  ['POST', '/api/tasks', { title: 't', scope: 'global', max_attempts: 11 }, '422 task_invalid', 'max_attempts'],
  ['POST', '/api/tasks', { title: 't', scope: 'global', metadata: text(16 * KIB) }, '413 task_too_large', 'metadata'],
  [
    'POST',
    '/api/tasks',
    { title: 't', scope: 'global', owner: { kind: 'cat', ref: 'x' } },
    '422 unprocessable',
    'owner',
  ],
  [
    'POST',
    '/api/tasks',
    { title: 't', scope: 'global', owner: { kind: 'human', ref: ' ' } },
    '422 task_invalid',
    'owner.ref',
  ],
  ['POST', '/api/tasks', { title: '\0', scope: 'global' }, '422 task_invalid', 'title'],
  ['POST', '/api/tasks', { title: 't', scope: 'global', description: 'a\0b' }, '422 task_invalid', 'description'],
  [
    'POST',
    '/api/tasks',
    {
      title: 't',
      scope: 'global',
      network_participation: { mode: 'live', channel_strategy: 'named', channel_id: 'The Team' },
    },
    '422 unprocessable',
    'network_participation.channel_id',
  ],
  ['POST', '/api/tasks', { title: 't', scope: 'global', nonsense: 1 }, '400 invalid_request', 'nonsense'],
  ['PATCH', '/api/tasks/:task', { title: '' }, '422 task_invalid', 'title'],
  ['PATCH', '/api/tasks/:task', { scope: 'workspace' }, '400 invalid_request', 'scope'],
  ['PATCH', '/api/tasks/:task', { max_attempts: 99 }, '422 task_invalid', 'max_attempts'],
  ['PATCH', '/api/tasks/none', { title: 't' }, '404 task_not_found', 'none'],
  ['POST', '/api/tasks/none/children', { title: 't', scope: 'global' }, '404 task_not_found', 'none'],
  ['POST', '/api/tasks/:done/children', { title: 't', scope: 'global' }, '409 task_conflict', ':done'],
  ['DELETE', '/api/tasks/:task', undefined, '409 task_run_open', ':run'],
  ['POST', '/api/tasks/:task/publish', {}, '409 task_conflict', 'only drafts'],
  ['POST', '/api/tasks/:task/approve', {}, '409 task_conflict', 'approval'],
  ['POST', '/api/tasks/:task/reject', {}, '409 task_conflict', 'approval'],
  ['POST', '/api/tasks/:task/recover', {}, '409 task_conflict', 'attention'],
  ['POST', '/api/tasks/:done/start', { idempotency_key: 'k' }, '409 task_conflict', ':done'],
  ['POST', '/api/tasks/:task/runs', { idempotency_key: text(201) }, '422 task_invalid', 'idempotency_key'],
  ['POST', '/api/tasks/:task/runs', { idempotency_key: 'other' }, '409 task_run_open', ':run'],
  ['POST', '/api/tasks/:task/runs/fan-out', { designations: [] }, '422 task_invalid', 'designations'],
  ['POST', '/api/tasks/:task/runs/fan-out', { designations: [{ brief: 'a' }] }, '422 task_invalid', 'designations.0'],
  [
    'POST',
    '/api/tasks/:free/runs/fan-out',
    { designations: [{ brief: 'a' }, { brief: 'b', metadata: text(16 * KIB) }], idempotency_key: 'f' },
    '422 task_invalid',
    'designations.1.metadata',
  ],
  [
    'POST',
    '/api/tasks/:free/runs/fan-out',
    { designations: [{ brief: 'a' }, { brief: 'b', idempotency_key: text(201) }], idempotency_key: 'f' },
    '422 task_invalid',
    'designations.1.idempotency_key',
  ],
  [
    'POST',
    '/api/tasks/:free/runs/fan-out',
    { designations: [{ brief: 'a' }, { brief: 'b', idempotency_key: ' ' }] },
    '422 task_invalid',
    'designations.0.idempotency_key',
  ],
  ['POST', '/api/tasks/:task/dependencies', { depends_on_task_id: ':task' }, '409 task_cycle', ':task'],
  ['POST', '/api/tasks/:task/dependencies', { depends_on_task_id: 'none' }, '404 task_not_found', 'none'],
  ['POST', '/api/tasks/:task/dependencies', { depends_on_task_id: ':done', kind: 'x' }, '422 unprocessable', 'kind'],
  ['DELETE', '/api/tasks/:task/dependencies/:done', undefined, '404 task_not_found', ':task'],
  ['POST', '/api/tasks/:task/pause', {}, '422 unprocessable', 'reason'],
  ['POST', '/api/tasks/:task/pause', { reason: ' ' }, '422 task_invalid', 'reason'],
  ['POST', '/api/tasks/:task/blocks', { kind: 'bad', reason: 'r' }, '422 unprocessable', 'kind'],
  ['POST', '/api/tasks/:task/blocks', { kind: 'transient', reason: 'r' }, '422 task_invalid', 'expires_at'],
  [
    'POST',
    '/api/tasks/:task/blocks',
    { kind: 'capability', reason: 'r', expires_at: FUTURE },
    '422 task_invalid',
    'expires_at',
  ],
  [
    'POST',
    '/api/tasks/:task/blocks',
    { kind: 'needs_input', reason: 'r', details: text(16 * KIB) },
    '422 task_invalid',
    'details',
  ],
  [
    'POST',
    '/api/tasks/:task/blocks',
    { kind: 'transient', reason: 'r', expires_at: '2030-02-31T00:00:00Z' },
    '422 unprocessable',
    'expires_at',
  ],
  [
    'POST',
    '/api/tasks/:task/blocks',
    { kind: 'transient', reason: 'r', expires_at: '2031-01-01T00:00:00+05' },
    '422 unprocessable',
    'expires_at',
  ],
  [
    'POST',
    '/api/tasks/:task/blocks',
    { kind: 'needs_input', reason: 'r', run_id: 'none' },
    '404 task_run_not_found',
    'none',
  ],
  [
    'POST',
    '/api/tasks/:task/blocks',
    { kind: 'needs_input', reason: 'r', run_id: ':over' },
    '422 task_invalid',
    'run_id',
  ],
  ['POST', '/api/tasks/:task/blocks/none/clear', {}, '404 task_block_not_found', ':task'],
  ['POST', '/api/task-runs/:run/complete', {}, '409 task_run_conflict', ':run'],
  ['POST', '/api/task-runs/:run/fail', {}, '422 unprocessable', 'error'],
  ['POST', '/api/task-runs/none/start', {}, '404 task_run_not_found', 'none'],
  ['POST', '/api/task-runs/:over/cancel', {}, '409 task_run_conflict', ':over'],
  ['POST', '/api/task-runs/:run/attach-session', { session_id: 'none' }, '409 AUTONOMY_SESSION_REQUIRED', 'none'],
  ['POST', '/api/runs/:run/release', {}, '409 task_run_conflict', ':run'],
  ['POST', '/api/runs/:run/fail', { reason: ' ' }, '422 task_reason_required', 'reason'],
  ['POST', '/api/runs/:over/fail', { reason: 'r' }, '409 task_run_conflict', ':over'],
  ['POST', '/api/runs/:run/retry', {}, '409 task_run_conflict', ':run'],
  ['POST', '/api/runs/:run/recover', {}, '409 task_run_conflict', ':run'],
  ['POST', '/api/runs/bulk/fail', { run_ids: [], reason: 'r' }, '422 task_invalid', 'run_ids'],
  ['POST', '/api/runs/bulk/fail', { run_ids: [':run'] }, '422 task_reason_required', 'reason'],
  ['POST', '/api/runs/bulk/fail', { run_ids: [':run'], reason: text(2001) }, '422 task_invalid', 'reason'],
  ['POST', '/api/runs/bulk/release', { run_ids: [':run'], metadata: text(16 * KIB) }, '422 task_invalid', 'metadata'],
  ['POST', '/api/runs/:run/release', { metadata: text(16 * KIB) }, '422 task_invalid', 'metadata'],
  ['POST', '/api/scheduler/pause', { reason: text(2001) }, '422 task_invalid', 'reason'],
  ['POST', '/api/scheduler/resume', { reason: text(2001) }, '422 task_invalid', 'reason'],
  ['POST', '/api/scheduler/drain', { reason: text(2001) }, '422 task_invalid', 'reason'],
  ['POST', '/api/scheduler/drain', { timeout_seconds: 3601 }, '422 task_invalid', 'timeout_seconds'],
  ['GET', '/api/tasks?status=odd', undefined, '400 invalid_query', 'status'],
  ['GET', '/api/tasks?limit=0', undefined, '400 invalid_query', 'limit'],
  ['GET', '/api/tasks?cursor=zzz', undefined, '400 invalid_cursor', ''],
  ['GET', '/api/observe/tasks/inbox?limit=201', undefined, '400 invalid_query', 'limit'],
]

test('each validation error has its status and code and names the invalid member', async ({ world }) => {
  const { task, run } = await world.queued()
  const done = await world.queued()
  const ada = world.agent()
  await ada.claim({ run_id: done.run })
  await ada.act('complete', done.run)
  const free = (await world.post('/api/tasks', { title: 'no run', scope: 'global' })).body.task.id
  const names: Readonly<Record<string, string>> = { task, run, done: done.task, over: done.run, free }
  const named = (part: string) => part.replace(/:(task|run|done|over|free)\b/g, (_, name: string) => names[name] ?? '')
  const wrong: string[] = []
  for (const [method, url, body, answer, where] of RULES) {
    const given = body === undefined ? undefined : JSON.parse(named(JSON.stringify(body)))
    const { status, body: reply } = await world.request(method as 'GET', named(url), given)
    if (`${status} ${reply?.code}` !== answer || !JSON.stringify(reply).includes(named(where)))
      wrong.push(
        `${method} ${url} ${JSON.stringify(body)?.slice(0, 100)}: ${status} ${JSON.stringify(reply)?.slice(0, 300)}`,
      )
  }
  assert.equal(wrong, [])
  assert.equal((await world.request('GET', `/api/tasks/${free}/runs`)).body.runs, [], 'nothing of a fan-out is queued')
})

test('an empty idempotency_key counts as none', async ({ world }) => {
  for (const key of ['', ' ', '']) {
    const { task } = (await world.post('/api/tasks', { title: 'work', scope: 'global' })).body
    const { status, body } = await world.post(`/api/tasks/${task.id}/start`, { idempotency_key: key })
    assert.equal([status, body.run?.idempotency_key], [201, `task.start.${task.id}`])
  }
  const ada = world.agent()
  await ada.claim({ idempotency_key: '' })
  assert.is((await ada.claim({ idempotency_key: '' })).body.code, 'AUTONOMY_LEASE_ALREADY_HELD')
})

test('an empty description removes the description', async ({ world }) => {
  const { task } = (await world.post('/api/tasks', { title: 'work', scope: 'global', description: 'long' })).body
  const change = async (body: object) => (await world.request('PATCH', `/api/tasks/${task.id}`, body)).body.task
  assert.is((await change({ description: null })).description, 'long')
  assert.is((await change({ description: ' ' })).description, undefined)
})

test('input of a lease holder is bounded, and its lease is checked by state, then by time', async ({ world }) => {
  const { run } = await world.queued()
  const other = await world.queued()
  const [ada, eve] = [world.agent(), world.agent()]
  const missing = await ada.act('heartbeat', run)
  assert.equal([missing.status, missing.body.code], [409, 'AUTONOMY_NO_ACTIVE_LEASE'])
  await ada.claim({ run_id: run, lease_seconds: 10 })
  await eve.claim({ run_id: other.run })
  const rules: readonly (readonly [string, object, string, string])[] = [
    ['complete', { result: text(64 * KIB) }, '422 task_invalid', 'result'],
    ['complete', { created_task_ids: ['none'] }, '409 AUTONOMY_CREATED_TASKS_UNKNOWN', 'none'],
    ['complete', { created_task_ids: Array(65).fill('x') }, '422 task_invalid', 'created_task_ids'],
    ['complete', { nonsense: 1 }, '400 invalid_request', 'nonsense'],
    ['fail', {}, '422 unprocessable', 'error'],
    ['fail', { error: ' ' }, '422 task_invalid', 'error'],
    ['fail', { error: 'e', metadata: text(16 * KIB) }, '422 task_invalid', 'metadata'],
    ['release', { reason: text(2001) }, '422 task_invalid', 'reason'],
    ['heartbeat', { lease_seconds: -1 }, '422 AUTONOMY_LEASE_INVALID', 'lease_seconds'],
    ['heartbeat', { lease_seconds: 86_401 }, '422 AUTONOMY_LEASE_INVALID', 'lease_seconds'],
  ]
  for (const [what, body, answer, where] of rules) {
    const { status, body: reply } = await ada.act(what, run, body)
    assert.is(`${status} ${reply.code}`, answer, `${what} ${JSON.stringify(body).slice(0, 80)}`)
    assert.ok(JSON.stringify(reply).includes(where), JSON.stringify(reply))
  }
  assert.is((await eve.act('complete', run)).body.code, 'AUTONOMY_FOREIGN_RUN')
  await world.clock.advance(10_000)
  assert.is((await ada.act('complete', run)).body.code, 'AUTONOMY_LEASE_EXPIRED')
})

test('a caller is limited to ten forced operations per minute and task', async ({ world }) => {
  const { run } = await world.queued()
  const codes: Reply[] = []
  for (let n = 0; n < 11; n++) {
    const { status, body } = await world.post(`/api/runs/${run}/release`)
    codes.push(`${status} ${body.code}`)
  }
  assert.equal([codes[9], codes[10]], ['409 task_run_conflict', '429 task_force_limit'])
  const other = await world.queued()
  assert.is((await world.post(`/api/runs/${other.run}/release`)).status, 409, 'another task has its own')
  await world.clock.advance(60_000)
  assert.is((await world.post(`/api/runs/${run}/release`)).status, 409)
})

test('a draining daemon starts nothing new and lets active runs end', async ({ world }) => {
  const { task, run } = await world.queued()
  const failed = await world.queued()
  await world.post(`/api/runs/${failed.run}/fail`, { reason: 'r' })
  const ada = world.agent()
  await ada.claim({ run_id: run })
  await world.post('/api/drain')
  for (const url of [`/api/tasks/${task}/start`, `/api/tasks/${task}/runs`, `/api/runs/${failed.run}/retry`]) {
    const { status, body } = await world.post(url)
    assert.equal([status, body.code], [503, 'draining'], url)
  }
  assert.is((await world.agent().claim()).status, 503)
  assert.is((await ada.act('heartbeat', run)).status, 200)
  assert.is((await ada.act('complete', run)).status, 200)
})

test('a cursor is only valid for its query and caller', async ({ world }) => {
  for (let n = 0; n < 3; n++) await world.post('/api/tasks', { title: `t${n}`, scope: 'global' })
  const { page } = (await world.request('GET', '/api/tasks?limit=1')).body
  const after = (more: string) => world.request('GET', `/api/tasks?limit=1&cursor=${page.next_cursor}${more}`)
  assert.is((await after('')).status, 200)
  const other = await after('&priority=high')
  assert.equal([other.status, other.body.code], [400, 'invalid_cursor'])
})

test.run()
