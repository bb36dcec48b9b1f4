// proof, timeout: 300s
import { existsSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { TaskWorld, until } from '../../../fixtures/task-world.js'
import type { Reply } from '../../../harness/kernel.js'

const test = suite<{ world: TaskWorld }>('sessions started for runs')

test.before(async context => {
  context.world = await TaskWorld.open()
  context.world.agent('coder')
  context.world.agent('leader')
  context.world.agent('broken', '--exit-at-once')
  context.world.agent('idler', '--idle')
})
test.after(({ world }) => world.close())

const open = { sandbox: { mode: 'none' } }
const by = (agent: string) => ({ ...open, worker: { mode: 'select', agent_name: agent } })

test('a run of a task with a profile gets a session of its agent, which stops when the run ends', async ({ world }) => {
  const task = await world.task('write a.txt; begin; complete', by('coder'))
  const run = await world.start(task)
  const done = await world.untilRun(
    run,
    ({ run, worker }) => run.status === 'completed' && worker?.ended_at,
    'is completed',
  )
  assert.equal([done.session.agent_name, done.session.state, done.worktree], ['coder', 'stopped', undefined])
  assert.equal(done.run.result, { by: done.run.session_id })
  const [first] = world.notes().filter(note => note.run === undefined && note.step === 'prompt')
  assert.match(String(first?.out), run)
  assert.is(first?.cwd, world.repository)
})

test('a per-run worktree keeps the result on a branch, including uncommitted changes', async ({ world }) => {
  const task = await world.task('write b.txt; commit one; write c.txt; complete', {
    ...by('coder'),
    worktree: { mode: 'per_run' },
  })
  const run = await world.start(task)
  const done = await world.untilRun(run, ({ worker }) => worker?.ended_at, 'has ended')
  assert.is(done.run.status, 'completed')
  const { branch, commit, folder } = done.worktree
  assert.is(world.git('rev-parse', branch), commit)
  assert.is(world.git('show', `${branch}:b.txt`), `by ${done.run.session_id}`)
  assert.is(world.git('show', `${branch}:c.txt`), `by ${done.run.session_id}`)
  assert.not.match(folder, new RegExp(`^${world.repository}/`))
  assert.match(await world.svc.svc('task', 'run', 'show', run), branch)
  assert.not(world.git('ls-files').includes('b.txt'))
})

test('a daemon killed while it makes the worktree of a run gives the run another one', async ({ world }) => {
  const [begun, go] = [world.signalFile('set-up'), world.signalFile('set-up-goes-on')]
  mkdirSync(path.dirname(begun), { recursive: true })
  const program = ['sh', '-c', `touch ${begun}; until [ -e ${go} ]; do sleep 0.1; done`]
  await world.svc.svc('config', 'set', 'session.worktree.setup', JSON.stringify(program))
  const run = await world.start(await world.task('complete', { ...by('coder'), worktree: { mode: 'per_run' } }))
  await until(
    () => existsSync(begun) || undefined,
    60_000,
    () => 'the setup program',
  )
  await world.killed()
  world.signal('set-up-goes-on')
  const done = await world.untilRun(run, ({ worker }) => worker?.ended_at && worker.session_id, 'has ended')
  assert.equal([done.run.status, done.worktree?.branch], ['completed', `svc/${run}-2`])
  await world.svc.svc('config', 'unset', 'session.worktree.setup')
})

test('the built-in agent claims its run and completes it with the report on the branch', async ({ world }) => {
  world.svc.writeHome(
    'agents/reporter/AGENT.md',
    '---\nname: reporter\npermissions: approve-all\ncommand: svc-report-agent\n---\n\nYou report.\n',
  )
  const task = await world.task('Report on this folder', { ...by('reporter'), worktree: { mode: 'per_run' } })
  const run = await world.start(task)
  const done = await world.untilRun(run, ({ worker }) => worker?.ended_at, 'has ended')
  assert.is(done.run.status, 'completed', JSON.stringify(done))
  assert.match(done.run.result.summary, 'svc-reports/report.md')
  assert.match(world.git('show', `${done.worktree.branch}:svc-reports/report.md`), '# Workspace report')
  // A place outside is refused, and the run says so.
  const refused = await world.task('Report', by('reporter'), { description: 'report to ../../outside.md' })
  const failed = await world.untilRun(await world.start(refused), ({ run }) => run.status === 'failed', 'has failed')
  assert.match(failed.run.error, 'report_path_outside_workspace')
})

test('a sandboxed agent works and commits in its worktree', async ({ world }) => {
  const task = await world.task('write d.txt; commit two; complete', {
    worker: { mode: 'select', agent_name: 'coder' },
    worktree: { mode: 'per_run' },
  })
  const run = await world.start(task)
  const done = await world.untilRun(run, ({ worker }) => worker?.ended_at, 'has ended')
  assert.is(done.run.status, 'completed', JSON.stringify(done))
  assert.match(world.git('log', '-1', '--format=%s', done.worktree.branch), 'two')
})

test('a session that fails to start is retried until the run needs attention', async ({ world }) => {
  await world.svc.svc('config', 'set', 'task.orchestration.spawn_failure_limit', '2')
  const run = await world.start(await world.task('never', by('broken')))
  const stuck = await world.untilRun(run, ({ run }) => run.status === 'needs_attention', 'needs attention')
  assert.match(stuck.run.error, /^spawn_failure_limit: /)
  assert.match(stuck.worker.error, /\S/)
  await world.svc.svc('config', 'set', 'task.orchestration.spawn_failure_limit', '5')
})

test('an idle agent is reminded once before its run goes to another session', async ({ world }) => {
  await world.svc.svc('config', 'set', 'task.orchestration.spawn_failure_limit', '1')
  const run = await world.start(await world.task('never', by('idler')))
  const stuck = await world.untilRun(run, ({ run }) => run.status === 'needs_attention', 'needs attention')
  assert.match(stuck.run.error, 'without claiming the run')
  const prompts = world.notes().filter(({ session, step }) => session === stuck.worker.session_id && step === 'prompt')
  assert.is(prompts.length, 2)
  await world.svc.svc('config', 'set', 'task.orchestration.spawn_failure_limit', '5')
})

test('a session that exceeds the maximum runtime is stopped and the run records the reason', async ({ world }) => {
  await world.svc.svc('config', 'set', 'task.orchestration.spawn_failure_limit', '1')
  await world.svc.svc('config', 'set', 'task.orchestration.default_max_runtime', '3s')
  const run = await world.start(await world.task(`wait ${world.signalFile('never')}`, by('coder')))
  const stuck = await world.untilRun(run, ({ run }) => run.status === 'needs_attention', 'needs attention')
  assert.match(stuck.run.error, 'exceeded task.orchestration.default_max_runtime (3 s)')
  await world.svc.svc('config', 'unset', 'task.orchestration.default_max_runtime')
  await world.svc.svc('config', 'set', 'task.orchestration.spawn_failure_limit', '5')
})

test('a failed session leaves no worktree, unless it contains something', async ({ world }) => {
  await world.svc.svc('config', 'set', 'task.orchestration.spawn_failure_limit', '2')
  const stuck = async (script: string) => {
    const run = await world.start(await world.task(script, { ...by('coder'), worktree: { mode: 'per_run' } }))
    await world.untilRun(run, ({ run, worker }) => run.status === 'needs_attention' && worker?.ended_at, 'is stuck')
    return world.git('branch', '--list', `svc/${run}*`, '--format=%(refname:short)').split('\n').filter(Boolean)
  }
  assert.equal(await stuck('nothing'), [])
  const [first, second] = await stuck('write g.txt; nothing')
  for (const branch of [first, second]) assert.match(world.git('show', `${branch}:g.txt`), 'by ses_')
  await world.svc.svc('config', 'set', 'task.orchestration.spawn_failure_limit', '5')
})

test('runs of a task with a named worktree use it one after the other', async ({ world }) => {
  const first = await world.start(
    await world.task('write e.txt; complete', { ...by('coder'), worktree: { mode: 'per_run' } }),
  )
  const { worktree } = await world.untilRun(first, ({ worker }) => worker?.ended_at, 'has ended')
  const task = await world.task('write f.txt; complete', {
    ...by('coder'),
    worktree: { mode: 'ref', worktree_ref: worktree.name },
  })
  const done = await world.untilRun(await world.start(task), ({ worker }) => worker?.ended_at, 'has ended')
  assert.equal([done.run.status, done.worktree.folder], ['completed', worktree.folder])
  for (const name of ['e.txt', 'f.txt']) assert.match(world.git('show', `${worktree.branch}:${name}`), 'by ses_')
})

test('no session is started while the scheduler or the task is paused', async ({ world }) => {
  await world.post('/api/scheduler/pause')
  const run = await world.start(await world.task('complete', by('coder')))
  const other = await world.task('complete', by('coder'))
  await world.post(`/api/tasks/${other}/pause`, { reason: 'not yet' })
  const second = await world.start(other)
  await world.post('/api/scheduler/resume')
  await world.untilRun(run, ({ run }) => run.status === 'completed', 'is completed')
  assert.equal([(await world.run(second)).run.status, (await world.run(second)).worker], ['queued', undefined])
  await world.post(`/api/tasks/${other}/resume`)
  await world.untilRun(second, ({ run }) => run.status === 'completed', 'is completed')
})

test('a drain lets a session end its run and starts no session for queued runs', async ({ world }) => {
  const go = world.signalFile('drained')
  const first = await world.start(await world.task(`wait ${go}; complete`, by('coder')))
  await world.untilRun(first, ({ run }) => run.status === 'claimed', 'is claimed')
  const drain = world.svc.json<{ completed: boolean; remaining_claims: number }>('scheduler', 'drain')
  await until(
    async () => (await world.request('GET', '/api/scheduler')).body.scheduler.paused || undefined,
    60_000,
    () => 'the pause',
  )
  const second = await world.start(await world.task('complete', by('coder')))
  world.signal('drained')
  const { completed, remaining_claims: left } = await drain
  assert.equal([completed, left, (await world.run(first)).run.status], [true, 0, 'completed'])
  assert.equal([(await world.run(second)).run.status, (await world.run(second)).worker], ['queued', undefined])
  await world.post('/api/scheduler/resume')
  await world.untilRun(second, ({ run }) => run.status === 'completed', 'is completed')
})

test('a prompt cuts a long description to the configured size and includes the handoff', async ({ world }) => {
  await world.svc.svc('config', 'set', 'task.orchestration.context_body_max_bytes', '1024')
  const task = await world.task('fail it broke', by('coder'), { description: `${'é'.repeat(600)} the end` })
  const first = await world.start(task)
  await world.untilRun(first, ({ run, worker }) => run.status === 'failed' && worker.ended_at, 'has failed')
  const { run } = await world.post(`/api/runs/${first}/retry`)
  const prompt = await world.untilNoted(
    ({ step, out }) => step === 'prompt' && String(out).includes(run.id),
    'the prompt of the next run',
  )
  const [, description = ''] = /Work on this task: .*\n\n(é+)\n\[truncated/.exec(String(prompt.out)) ?? []
  assert.is(Buffer.byteLength(description), 1024)
  assert.match(String(prompt.out), 'Handoff from the previous run:\nit broke')
  await world.untilRun(run.id, ({ worker }) => worker?.ended_at, 'has ended')
  await world.svc.svc('config', 'unset', 'task.orchestration.context_body_max_bytes')
})

test('a coordinator gets a session of its agent, divides its task and delegates the parts', async ({ world }) => {
  const { sandbox, worker } = by('coder')
  const coordinator = { mode: 'guided', agent_name: 'leader', guidance: 'Two parts at most.' }
  const task = await world.task('begin; divide complete,complete; complete', { sandbox, worker, coordinator })
  const run = await world.start(task)
  const done = await world.untilRun(run, ({ worker }) => worker?.ended_at, 'has ended')
  assert.equal([done.run.status, done.run.kind], ['completed', 'coordinator'], JSON.stringify(done))
  const { session } = (await world.request('GET', `/api/sessions/${done.run.session_id}`)).body
  assert.equal([session.agent_name, session.type], ['leader', 'coordinator'])
  const prompt = world.notes().find(({ step, out }) => step === 'prompt' && String(out).includes(run))
  assert.match(String(prompt?.out), /^Coordinate this task: [\s\S]*Two parts at most\.[\s\S]*svc task fan-out/)
  const { runs } = (await world.request('GET', `/api/tasks/${task}/runs`)).body
  const parts = runs.filter((one: Reply) => one.id !== run)
  assert.is(parts.length, 2)
  for (const part of parts) {
    const { run: ended } = await world.untilRun(part.id, ({ worker }) => worker?.ended_at, 'has ended')
    assert.equal([ended.status, ended.designation_group_id], ['completed', done.run.designation_group_id])
  }
  assert.is((await world.request('GET', `/api/tasks/${task}`)).body.task.task.status, 'completed')
})

test('roles.coordinator limits the number and duration of coordinators, and can disable them', async ({ world }) => {
  const set = (name: string, value: string) => world.svc.svc('config', 'set', `roles.coordinator.${name}`, value)
  const lead = (script: string) =>
    world.task(script, { ...open, coordinator: { mode: 'guided' }, worker: { mode: 'select', agent_name: 'coder' } })
  await set('agent', 'leader')
  await set('max_active_sessions_per_workspace', '1')
  const go = world.signalFile('lead')
  const first = await world.start(await lead(`wait ${go}; complete`))
  await world.untilRun(first, ({ run }) => run.status === 'claimed', 'is claimed')
  const second = await world.start(await lead('complete'))
  const worker = await world.start(await world.task('complete', by('coder')))
  await world.untilRun(worker, ({ run }) => run.status === 'completed', 'is completed, for it does not lead')
  assert.is((await world.run(second)).run.status, 'queued')
  world.signal('lead')
  await world.untilRun(second, ({ run }) => run.status === 'completed', 'is completed')
  const [a, b] = await Promise.all([first, second].map(id => world.run(id)))
  assert.ok(b.worker.started_at >= a.run.ended_at, JSON.stringify([a, b]))
  assert.equal([a.session.agent_name, b.session.agent_name], ['leader', 'leader'], 'as configured')

  await world.svc.svc('config', 'set', 'task.orchestration.spawn_failure_limit', '1')
  await set('ttl', '2s')
  const long = await world.start(await lead(`wait ${world.signalFile('never')}`))
  const late = await world.untilRun(long, ({ run }) => run.status === 'needs_attention', 'needs attention')
  assert.match(late.run.error, 'exceeded roles.coordinator.ttl (2 s)')
  await set('enabled', 'false')
  const off = await world.start(await lead('complete'))
  const stuck = await world.untilRun(off, ({ run }) => run.status === 'needs_attention', 'needs attention')
  assert.match(stuck.run.error, 'roles.coordinator.enabled is false')
  for (const name of ['agent', 'max_active_sessions_per_workspace', 'ttl', 'enabled'])
    await world.svc.svc('config', 'unset', `roles.coordinator.${name}`)
  await world.svc.svc('config', 'set', 'task.orchestration.spawn_failure_limit', '5')
})

test('the number of started sessions is limited to the active runs allowed per workspace', async ({ world }) => {
  await world.svc.svc('config', 'set', 'task.orchestration.max_active_runs_per_workspace', '1')
  const go = world.signalFile('go')
  const first = await world.start(await world.task(`wait ${go}; complete`, by('coder')))
  await world.untilRun(first, ({ run }) => run.status === 'claimed', 'is claimed')
  const second = await world.start(await world.task('complete', by('coder')))
  const third = await world.start(await world.task('complete', by('coder')))
  world.signal('go')
  await world.untilRun(third, ({ run }) => run.status === 'completed', 'is completed')
  const [a, b, c] = await Promise.all([first, second, third].map(id => world.run(id)))
  assert.ok(b.worker.started_at >= a.run.ended_at && c.worker.started_at >= b.run.ended_at, JSON.stringify([a, b, c]))
  await world.svc.svc('config', 'set', 'task.orchestration.max_active_runs_per_workspace', '16')
})

test('a run whose agent process exits needs attention, and recovery queues one new run', async ({ world }) => {
  const task = await world.task(`wait ${world.signalFile('never')}`, by('coder'))
  const run = await world.start(task)
  await world.untilRun(run, ({ run }) => run.status === 'claimed', 'is claimed')
  process.kill((await world.untilNoted(note => note.run === run, 'a step')).pid, 'SIGKILL')
  const stuck = await world.untilRun(run, ({ run }) => run.status === 'needs_attention', 'needs attention')
  assert.match(stuck.run.error, 'exited unexpectedly')
  const { body } = await world.request('POST', `/api/runs/${run}/recover`, { reason: 'again' })
  assert.equal([body.previous_run.status, body.run.previous_run_id, body.run.status], ['failed', run, 'queued'])
  assert.is((await world.request('POST', `/api/runs/${run}/recover`, { reason: 'again' })).status, 409)
  await world.untilRun(body.run.id, ({ run }) => run.status === 'claimed', 'is claimed')
  await world.post(`/api/task-runs/${body.run.id}/cancel`)
  const over = await world.untilRun(body.run.id, ({ worker }) => worker.ended_at, 'has ended')
  assert.is(over.session.state, 'stopped')
})

test('a job with a task ends as delegated once the task exists, and its agent works on the task', async ({ world }) => {
  const { job } = await world.post('/api/automation/jobs', {
    name: 'nightly',
    agent_name: 'coder',
    prompt: 'do it',
    schedule: { mode: 'every', interval: '24h' },
    scope: 'workspace',
    workspace_id: world.workspace,
    task: { title: 'complete' },
  })
  const { run } = await world.post(`/api/automation/jobs/${job.id}/trigger`)
  const ended = await until(
    async () => {
      const { body } = await world.request('GET', `/api/automation/runs/${run.id}`)
      return body.run.ended_at ? body.run : undefined
    },
    60_000,
    () => `the end of ${run.id}`,
  )
  assert.is(ended.status, 'delegated', JSON.stringify(ended))
  const { task } = (await world.request('GET', `/api/tasks/${ended.task_id}`)).body.task
  assert.equal([task.origin, task.title], [{ kind: 'automation', ref: `run:${run.id}` }, 'complete'])
  const first = await world.untilRun(ended.task_run_id, ({ run }) => run.status === 'completed', 'is completed')
  assert.equal([first.run.idempotency_key, first.session.agent_name], [`automation-run:${run.id}`, 'coder'])
})

test('a run denied to its agent by a budget records the reason', async ({ world }) => {
  await world.svc.svc('config', 'set', 'task.orchestration.spawn_failure_limit', '1')
  const first = await world.start(await world.task('complete', by('coder')))
  await world.untilRun(first, ({ run }) => run.status === 'completed', 'is completed')
  const task = await world.task('complete', by('coder'))
  await world.svc.svc('budget', 'set', 'task', task, '--tokens', '1000')
  const run = await world.start(task)
  const stuck = await world.untilRun(run, ({ run }) => run.status === 'needs_attention', 'needs attention')
  assert.match(stuck.run.error, 'AUTONOMY_BUDGET_UNMEASURED: agent coder does not report its tokens')
  await world.svc.svc('config', 'set', 'task.orchestration.spawn_failure_limit', '5')
})

test.run()
