import { mkdirSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, type PluginKernel } from '../../../../kernel/plugin.js'
import { Prepared } from '../../../../kernel/store/statements.js'
import { inTree } from '../../../../plugins/index.js'
import { JobKind } from '../../../../plugins/work/automation/api.js'
import { testCases } from '../../../fixtures/cases.js'
import { boot, temporaryFolder } from '../../../harness/kernel.js'
import { bench, hourly } from './bench.js'
import { completed } from './fake-sessions.js'

const base = {
  name: 'a',
  agent_name: 'report',
  prompt: 'Go.',
  scope: 'global',
  schedule: { mode: 'every', interval: '1h' },
}

test('the jobs API creates, reads, updates and deletes records', async () => {
  const b = await bench()
  const made = await b.request('POST', '/api/automation/jobs', {
    ...base,
    scope: 'workspace',
    workspace_id: b.workspace,
  })
  assert.is(made.status, 201)
  const { job } = made.body
  assert.match(job.id, /^job_[0-9a-f]{16}$/)
  assert.equal([job.source, job.enabled, job.target_kind, job.workspace_id], ['dynamic', true, 'agent', b.workspace])
  assert.equal(job.fire_limit, { max: 12, window: '1h' })
  assert.equal(job.retry, { strategy: 'none', max_retries: 0, base_delay: '' })
  assert.ok(job.next_run)
  const { record } = (await b.request('GET', `/api/resources/automation.job/${job.id}`)).body
  assert.equal([record.version, record.scope, record.spec.name], [1, { kind: 'workspace', id: b.workspace }, 'a'])

  const changed = await b.request('PATCH', `/api/automation/jobs/${job.id}`, {
    prompt: 'Stop.',
    schedule: null,
    enabled: false,
  })
  assert.equal(
    [changed.status, changed.body.job.prompt, changed.body.job.enabled, changed.body.job.next_run],
    [200, 'Stop.', false, null],
  )
  assert.equal(changed.body.job.schedule, { mode: 'every', interval: '1h' })
  await b.request('PATCH', `/api/automation/jobs/${job.id}`, {})
  assert.is((await b.request('GET', `/api/resources/automation.job/${job.id}`)).body.record.version, 2)

  assert.is((await b.request('DELETE', `/api/automation/jobs/${job.id}`)).status, 204)
  for (const [method, path] of [
    ['GET', ''],
    ['PATCH', ''],
    ['DELETE', ''],
    ['GET', '/runs'],
    ['POST', '/trigger'],
  ] as const) {
    const reply = await b.request(method, `/api/automation/jobs/${job.id}${path}`, method === 'PATCH' ? {} : undefined)
    assert.equal([reply.status, reply.body.code], [404, 'job_not_found'], `${method} ${path}`)
  }
  await b.end()
})

test('a job without an agent gets the default agent of a session', async () => {
  const b = await bench()
  const { agent_name: _, ...unnamed } = base
  const made = await b.request('POST', '/api/automation/jobs', unnamed)
  assert.equal([made.status, made.body.job.agent_name], [201, 'general'])
  await b.close()
})

test('an unknown agent is refused, and a workspace agent is accepted only in its workspace', async () => {
  const own = await boot({ plugins: inTree })
  const root = await temporaryFolder('workspace')
  mkdirSync(path.join(root, '.svc/agents/tester'), { recursive: true })
  writeFileSync(path.join(root, '.svc/agents/tester/AGENT.md'), '---\nname: tester\ncommand: "true"\n---\nTest.\n')
  const { workspace } = (await own.request('POST', '/api/workspaces', { root_dir: root })).body
  const create = (name: string, more: object) => own.request('POST', '/api/automation/jobs', { ...base, name, ...more })
  const refused = await create('a', { agent_name: 'tester' })
  assert.equal([refused.status, refused.body.code], [400, 'job_invalid'])
  assert.match(refused.body.error, /agent not found: "tester"/)
  const scope = { scope: 'workspace', workspace_id: workspace.id }
  const { status, body } = await create('b', { agent_name: 'tester', ...scope })
  assert.is(status, 201, body.error)
  await own.close()
  await rm(root, { recursive: true })
})

const WRONG: readonly [what: string, body: Record<string, unknown>, status: number, says: RegExp][] = [
  ['an unknown mode', { schedule: { mode: 'often' } }, 400, /mode/],
  ['fields of two modes', { schedule: { mode: 'cron', expr: '* * * * *', interval: '1h' } }, 400, /schedule.interval/],
  ['no field of its mode', { schedule: { mode: 'cron' } }, 400, /schedule.expr/],
  ['six cron fields', { schedule: { mode: 'cron', expr: '* * * * * *' } }, 400, /five fields/],
  ['@reboot', { schedule: { mode: 'cron', expr: '@reboot' } }, 400, /five fields/],
  ['a cron extension', { schedule: { mode: 'cron', expr: '0 0 L * *' } }, 400, /schedule.expr/],
  ['an invalid minute', { schedule: { mode: 'cron', expr: '61 0 * * *' } }, 400, /schedule.expr/],
  ['an impossible day', { schedule: { mode: 'cron', expr: '0 0 31 2 *' } }, 400, /never matches/],
  ['an invalid duration', { schedule: { mode: 'every', interval: 'hourly' } }, 400, /interval/],
  ['an interval of 0', { schedule: { mode: 'every', interval: '0s' } }, 400, /interval/],
  ['an interval below the second', { schedule: { mode: 'every', interval: '10ms' } }, 400, /at least 1s/],
  ['an invalid time', { schedule: { mode: 'at', time: 'tomorrow' } }, 400, /time/],
  ['a past time', { schedule: { mode: 'at', time: '2020-01-01T00:00:00Z' } }, 400, /in the past/],
  [
    'a policy with at',
    { schedule: { mode: 'at', time: '2031-01-01T00:00:00Z', catch_up_policy: 'replay' } },
    400,
    /catch_up_policy/,
  ],
  ['a grace below 0', { schedule: { mode: 'every', interval: '1h', misfire_grace_seconds: -1 } }, 400, /grace/],
  ['a limit of 0', { fire_limit: { max: 0, window: '1h' } }, 400, /fire_limit.max/],
  ['a window of 0', { fire_limit: { max: 1, window: '0s' } }, 400, /fire_limit.window/],
  ['retries without a strategy', { retry: { strategy: 'none', max_retries: 1, base_delay: '' } }, 400, /retry/],
  ['a strategy without a delay', { retry: { strategy: 'backoff', max_retries: 1, base_delay: '' } }, 400, /retry/],
  ['no agent', { agent_name: ' ' }, 400, /agent_name/],
  ['no prompt', { prompt: ' ' }, 400, /prompt/],
  ['a scope without its workspace', { scope: 'workspace' }, 400, /workspace_id/],
  ['a workspace in global scope', { workspace_id: 'ws_1' }, 400, /workspace_id/],
  ['an unknown workspace', { scope: 'workspace', workspace_id: 'ws_0000000000000000' }, 422, /workspace/],
  [
    'a loop target of an agent job',
    { target_kind: 'agent', loop_target: { loop_name: 'l', workspace_id: 'w' } },
    400,
    /loop_target/,
  ],
  ['a loop with a prompt', { loop_target: { loop_name: 'l', workspace_id: 'w' } }, 422, /must be empty/],
  [
    'a task with retries',
    { task: { title: 't' }, retry: { strategy: 'backoff', max_retries: 1, base_delay: '1s' } },
    400,
    /retry/,
  ],
  ['a command that ends the daemon', { prompt: 'Then run `svc daemon stop`.' }, 400, /daemon/],
  ['a signal to the daemon', { prompt: 'kill -9 $(pgrep svc)' }, 400, /daemon/],
  ['a service manager', { prompt: 'sudo systemctl restart svc' }, 400, /daemon/],
  ['an unknown member', { colour: 'red' }, 400, /colour/],
]
testCases({
  open: () => bench(),
  close: b => b.end(),
  cases: WRONG,
  name: ([what]) => `a job is refused with the field in the error: ${what}`,
  run: async (b, [, change, status, says]) => {
    const reply = await b.request('POST', '/api/automation/jobs', { ...base, ...change })
    assert.is(reply.status, status, JSON.stringify(reply.body))
    assert.match(`${reply.body.error}`, says)
  },
  after: [
    'a refused job is not stored',
    async b => assert.equal((await b.request('GET', '/api/automation/jobs')).body.jobs, []),
  ],
})

test('the resources API returns 422 for an invalid spec and for a spec that contradicts its record', async () => {
  const b = await bench()
  const wrong = [
    { schedule: { mode: 'cron', expr: 'x' } },
    { id: 'other' },
    { scope: 'global' },
    { workspace_id: 'ws_other' },
    { agent_name: undefined },
    { name: '' },
  ]
  for (const change of wrong) {
    const reply = await b.put('demo', hourly(change))
    assert.equal([reply.status, reply.body.code], [422, 'invalid_spec'], JSON.stringify(change))
  }
  const spec = { id: 'demo', scope: 'workspace', workspace_id: b.workspace, target_kind: 'agent', extra: 1 }
  const kept = await b.put('demo', hourly(spec))
  assert.is(kept.status, 201)
  assert.is(kept.body.record.spec.extra, undefined)
  const command = await b.put('demo', hourly({ prompt: 'svc daemon restart' }), 1)
  assert.equal([command.status, command.body.code], [400, 'lifecycle_command'])
  await b.end()
})

test('job names are unique in a scope in both APIs, and free again after a delete', async () => {
  const b = await bench()
  await b.put('demo', hourly({ name: 'one' }))
  const taken = await b.put('other', hourly({ name: 'one' }))
  assert.equal([taken.status, taken.body.code], [409, 'job_name_taken'])
  const posted = await b.request('POST', '/api/automation/jobs', {
    ...base,
    name: 'one',
    scope: 'workspace',
    workspace_id: b.workspace,
  })
  assert.is(posted.status, 409)
  assert.is((await b.request('POST', '/api/automation/jobs', { ...base, name: 'one' })).status, 201)
  assert.is((await b.put('demo', hourly({ name: 'two' }), 1)).status, 200)
  assert.is((await b.put('other', hourly({ name: 'one' }))).status, 201)
  assert.is((await b.put('demo', hourly({ name: 'one' }), 2)).status, 409)
  await b.request('DELETE', '/api/automation/jobs/other')
  assert.is((await b.put('demo', hourly({ name: 'one' }), 2)).status, 200)
  await b.end()
})

/** Writes a job as an activation would. */
const definer = definePlugin({
  name: 'definer',
  version: '1.0.0',
  service: async () =>
    class {
      constructor(private readonly kernel: PluginKernel) {}
      async start() {
        const { kernel } = this
        const bundle = { kind: 'bundle.activation', id: 'act_1' }
        const job = {
          kind: JobKind,
          id: 'packaged',
          scope: { kind: 'global' as const },
          spec: hourly({ name: 'packaged' }),
        }
        await kernel.db.tx(t => kernel.records.put(t, kernel.actor, { ...job, quiet: true, owner: bundle }))
      }
    },
}).surface({})

test('only enabled can be changed on jobs of the configuration and of packages, as an overlay', async () => {
  // It writes jobs, so it has to come after the plugin that knows them.
  const after = { ...definer, requires: { automation: { id: 'automation@1' } } }
  const { name: _, ...configured } = hourly()
  const b = await bench({ plugins: [after], config: { automation: { jobs: { configured } } } })
  const { jobs } = (await b.request('GET', '/api/automation/jobs')).body
  for (const [name, source] of [
    ['configured', 'config'],
    ['packaged', 'package'],
  ] as const) {
    const { id } = jobs.find((job: { name: string }) => job.name === name)
    const job = await b.job(id)
    assert.equal([job.source, job.enabled], [source, true])
    for (const body of [{ prompt: 'x' }, { enabled: false, prompt: 'x' }]) {
      const reply = await b.request('PATCH', `/api/automation/jobs/${id}`, body)
      assert.equal([reply.status, reply.body.code], [409, 'job_read_only'])
    }
    const reply = await b.request('DELETE', `/api/automation/jobs/${id}`)
    assert.equal([reply.status, reply.body.code], [409, 'job_read_only'])
    const direct = await b.request('PUT', `/api/resources/automation.job/${id}`, {
      expected_version: 1,
      scope: { kind: 'global' },
      spec: hourly(),
    })
    assert.is(direct.status, 403)
    const off = (await b.request('PATCH', `/api/automation/jobs/${id}`, { enabled: false })).body.job
    assert.equal([off.enabled, off.next_run, off.scheduler.registered], [false, null, false])
    assert.is((await b.request('GET', `/api/resources/automation.job/${id}`)).body.record.version, 1)
    const on = (await b.request('PATCH', `/api/automation/jobs/${id}`, { enabled: true })).body.job
    assert.ok(on.enabled && on.next_run)
  }
  await b.end()
})

test('job lists support filters, search and pages, and cursors are bound to their filter', async () => {
  const b = await bench()
  for (const n of [1, 2, 3, 4, 5])
    await b.put(
      `j${n}`,
      hourly({ name: `job ${n}`, enabled: n % 2 === 1, prompt: n === 3 ? 'Find the NEEDLE.' : 'Go.' }),
    )
  await b.clock.advance(1000)
  await b.request('POST', '/api/automation/jobs', { ...base, name: 'everywhere' })
  const list = async (query: string) => (await b.request('GET', `/api/automation/jobs?${query}`)).body
  const ids = (body: { jobs: { id: string }[] }) => body.jobs.map(job => job.id)
  assert.is((await list('')).page.total, 6)
  assert.is((await list('')).jobs[0].name, 'everywhere')
  assert.equal(ids(await list('scope=workspace&enabled=false')), ['j4', 'j2'])
  assert.equal(ids(await list('q=needle')), ['j3'])
  assert.equal(ids(await list(`workspace_id=${b.workspace}&limit=2`)), ['j5', 'j4'])
  assert.equal(ids(await list('source=config')), [])
  assert.is((await list('scope=global')).jobs[0].name, 'everywhere')
  const first = await list('scope=workspace&limit=2')
  assert.equal([first.page.has_more, first.page.total, first.page.limit], [true, 5, 2])
  const second = await list(`scope=workspace&limit=2&cursor=${first.page.next_cursor}`)
  assert.equal(ids(second), ['j3', 'j2'])
  const third = await list(`scope=workspace&limit=3&cursor=${second.page.next_cursor}`)
  assert.equal([ids(third), third.page.has_more, third.page.next_cursor], [['j1'], false, undefined])
  for (const query of [
    `cursor=${first.page.next_cursor}`,
    'cursor=nonsense',
    `enabled=true&scope=workspace&cursor=${first.page.next_cursor}`,
  ]) {
    const reply = await b.request('GET', `/api/automation/jobs?${query}`)
    assert.equal([reply.status, reply.body.code], [400, 'invalid_cursor'])
  }
  assert.is((await b.request('GET', '/api/automation/jobs?limit=-1')).status, 400)
  assert.is((await b.request('GET', '/api/automation/jobs?scope=planet')).status, 400)
  await b.end()
})

test('a search decodes only jobs that contain the text, whatever the case and the alphabet', async () => {
  const b = await bench()
  const prompts = ['Plain.', '5 \u212aelvin', '\u0130stanbul', 'Pr\u00fcfe "a\\b"\tnow', 'NEEDLE']
  for (const [n, prompt] of prompts.entries()) await b.put(`j${n}`, hourly({ name: `job ${n}`, prompt }))
  const search = async (q: string) => {
    const { jobs, page } = (await b.request('GET', `/api/automation/jobs?q=${encodeURIComponent(q)}`)).body
    assert.is(page.total, jobs.length)
    return jobs.map((job: { id: string }) => job.id)
  }
  const decoded: number[] = []
  const { rows } = Prepared.prototype
  Prepared.prototype.rows = function (params, limit) {
    const found = rows.call(this, params, limit)
    if (/SELECT \* FROM kernel_record .* LIKE /.test(this.sql)) decoded.push(found.length)
    return found
  }
  try {
    assert.equal(await search('needle'), ['j4'])
    assert.equal(await search('nowhere'), [])
    assert.equal(decoded, [1])
  } finally {
    Prepared.prototype.rows = rows
  }
  assert.equal(await search(' kelv '), ['j1'])
  assert.equal(await search('stanbul'), ['j2'])
  assert.equal(await search('i\u0307stan'), ['j2'])
  assert.equal(await search('pr\u00dcf'), ['j3'])
  assert.equal(await search('"a\\b"\tnow'), ['j3'])
  assert.equal(await search('\t'), ['j4', 'j3', 'j2', 'j1', 'j0'])
  assert.equal(await search('Dynamic'), ['j4', 'j3', 'j2', 'j1', 'j0'])
  await b.end()
})

test('a list of all jobs counts them only after a change', async () => {
  const b = await bench()
  for (const n of [1, 2, 3]) await b.put(`j${n}`, hourly({ name: `job ${n}` }))
  let counts = 0
  const { rows } = Prepared.prototype
  Prepared.prototype.rows = function (params, limit) {
    if (this.sql.startsWith('SELECT count(*) FROM kernel_record')) counts++
    return rows.call(this, params, limit)
  }
  const list = async (query = '') => {
    const { jobs, page } = (await b.request('GET', `/api/automation/jobs?limit=2${query}`)).body
    return { ids: jobs.map(({ id }: { id: string }) => id), total: page.total, next: page.next_cursor }
  }
  try {
    const first = await list()
    assert.equal([first.ids, first.total, counts], [['j3', 'j2'], 3, 1])
    const second = await list(`&cursor=${first.next}`)
    assert.equal([second.ids, second.total, second.next], [['j1'], 3, undefined])
    assert.equal([await list(), counts], [first, 1])
    await b.put('j4', hourly({ name: 'job 4' }))
    counts = 0
    assert.equal([(await list()).total, counts], [4, 1])
    assert.is((await b.request('DELETE', '/api/automation/jobs/j4')).status, 204)
    assert.equal([(await list()).total, (await list()).ids], [3, first.ids])
  } finally {
    Prepared.prototype.rows = rows
  }
  await b.end()
})

test('runs are listed newest first, filtered, and found by id', async () => {
  const b = await bench()
  b.sessions.answer = () => completed
  for (const id of ['a', 'b']) await b.put(id, hourly({ name: id }))
  // To its end before time passes: deadlines of its dispatch count by the clock that the test advances.
  const trigger = async (id: string) => {
    const { run } = (await b.request('POST', `/api/automation/jobs/${id}/trigger`)).body
    await b.until(async () => (await b.runs()).every(r => r.status === 'completed'), `${run.id} has ended`)
    return run.id
  }
  const first = await trigger('a')
  await b.clock.advance(60_000)
  const second = await trigger('b')
  await b.clock.advance(60_000)
  const third = await trigger('a')
  const list = async (query: string) =>
    (await b.request('GET', `/api/automation/runs${query}`)).body.runs.map((run: { id: string }) => run.id)
  assert.equal(await list(''), [third, second, first])
  assert.equal(await list('?job_id=a'), [third, first])
  assert.equal(await list('?limit=1'), [third])
  assert.equal(await list('?status=failed'), [])
  assert.equal(await list('?trigger_id=trg_1'), [])
  assert.equal(
    await list(
      `?since=${encodeURIComponent('2030-01-01T00:00:30Z')}&until=${encodeURIComponent('2030-01-01T00:01:30Z')}`,
    ),
    [second],
  )
  assert.is((await b.request('GET', '/api/automation/runs?since=yesterday')).status, 400)
  const history = (await b.request('GET', '/api/automation/jobs/a/runs?limit=1')).body.runs
  assert.equal(
    history.map((run: { id: string }) => run.id),
    [third],
  )
  assert.is((await b.request('GET', `/api/automation/runs/${second}`)).body.run.job_id, 'b')
  assert.equal((await b.request('GET', '/api/automation/runs/run_none')).body.code, 'run_not_found')
  await b.end()
})

test('a cursor of the jobs is invalid for triggers', async () => {
  const b = await bench()
  const trigger = { ...base, schedule: undefined, event: 'session.stopped' }
  for (const name of ['a', 'b']) {
    assert.is((await b.request('POST', '/api/automation/jobs', { ...base, name })).status, 201)
    assert.is((await b.request('POST', '/api/automation/triggers', { ...trigger, name })).status, 201)
  }
  for (const [one, other] of [
    ['jobs', 'triggers'],
    ['triggers', 'jobs'],
  ]) {
    const { page } = (await b.request('GET', `/api/automation/${one}?limit=1`)).body
    assert.is((await b.request('GET', `/api/automation/${one}?limit=1&cursor=${page.next_cursor}`)).status, 200)
    const refused = await b.request('GET', `/api/automation/${other}?limit=1&cursor=${page.next_cursor}`)
    assert.equal([refused.status, refused.body.code], [400, 'invalid_cursor'])
  }
})

test('names and prompts of jobs and triggers contain no invisible characters', async () => {
  const b = await bench()
  const trigger = { ...base, schedule: undefined, event: 'session.stopped' }
  for (const [noun, body] of [
    ['job', base],
    ['trigger', trigger],
  ] as const) {
    const url = `/api/automation/${noun}s`
    for (const wrong of [{ name: 'a\0b' }, { name: 'a\nb' }, { name: 'a\u001b[31mb' }, { prompt: 'a\0b' }]) {
      const refused = await b.request('POST', url, { ...body, ...wrong })
      assert.equal([refused.status, refused.body.code], [400, `${noun}_invalid`], JSON.stringify(wrong))
    }
    const made = await b.request('POST', url, { ...body, prompt: 'One line.\nAnother one.' })
    assert.is(made.status, 201, JSON.stringify(made.body))
    const changed = await b.request('PATCH', `${url}/${made.body[noun].id}`, { name: 'a\nb' })
    assert.equal([changed.status, changed.body.code], [400, `${noun}_invalid`])
  }
  const record = { scope: { kind: 'global' }, spec: hourly({ name: 'a\nb' }) }
  assert.is((await b.request('PUT', '/api/resources/automation.job/odd', record)).status, 400)
})

test.run()
