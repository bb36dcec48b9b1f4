import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, Fault, type PluginKernel, surfaceOf } from '../../../../kernel/plugin.js'
import { SCRATCH_ID } from '../../../../plugins/desk/workspaces/api.js'
import { Events, type StoredEvent } from '../../../../plugins/platform/events/api.js'
import { Automation } from '../../../../plugins/work/automation/api.js'
import { type Bench, bench, hourly } from './bench.js'
import { completed, failed } from './fake-sessions.js'

const HOUR = 3_600_000

async function trigger(b: Bench, id = 'demo') {
  const reply = await b.request('POST', `/api/automation/jobs/${id}/trigger`)
  assert.is(reply.status, 200, JSON.stringify(reply.body))
  return reply.body.run
}

const ended = (b: Bench, id: string) =>
  b.until(async () => {
    const { run } = (await b.request('GET', `/api/automation/runs/${id}`)).body
    return run.ended_at && run
  }, `run ${id} has ended`)

/** Sees the event log. */
function observer() {
  const events: StoredEvent[] = []
  const plugin = definePlugin({
    name: 'observer',
    version: '1.0.0',
    requires: { events: Events },
    service: async () =>
      class {
        constructor(kernel: PluginKernel<{ events: typeof Events }>) {
          kernel.needs.events.on('*', seen => {
            events.push(seen)
          })
        }
      },
  }).surface({})
  return { events, plugin }
}

test('a manual trigger returns the scheduled run, also of a disabled job, which then completes', async () => {
  const b = await bench()
  await b.put('demo', hourly({ enabled: false }))
  const run = await trigger(b)
  assert.match(run.id, /^run_[0-9a-f]{16}$/)
  assert.equal([run.status, run.attempt, run.session_id, run.scheduled_at], ['scheduled', 1, undefined, null])
  await b.until(async () => b.sessions.prompts.length === 1, 'the prompt runs')
  const running = (await b.request('GET', `/api/automation/runs/${run.id}`)).body.run
  const session = b.sessions.created[0]
  assert.equal([running.status, running.session_id], ['running', session?.id])
  assert.equal([session?.agentName, session?.name, session?.workspaceId], ['report', 'nightly report', b.workspace])
  assert.is(b.sessions.prompts[0]?.source, 'automation')
  b.sessions.finish(session?.id ?? '', completed)
  assert.is((await ended(b, run.id)).status, 'completed')
  assert.equal(
    b.sessions.stops.map(stop => stop.reason),
    ['completed'],
  )
  await b.end()
})

test('the events of a run lead back to the request or to the record', async () => {
  const { events, plugin } = observer()
  const b = await bench({ plugins: [plugin] })
  b.sessions.answer = () => completed
  await b.put('demo', hourly())
  const byHand = await ended(b, (await trigger(b)).id)
  const bySchedule = await b.after(
    HOUR,
    async () => (await b.runs()).find(run => run.scheduled_at && run.ended_at),
    'it ran',
  )
  await b.until(async () => events.filter(e => e.name === 'automation.run.ended').length === 2, 'the events are out')
  const chain = (id: string) => {
    const own = events.filter(e => e.subject === id)
    assert.equal(
      own.map(e => e.name),
      ['automation.run.created', 'automation.run.started', 'automation.run.ended'],
    )
    const [made, started, end] = own as [StoredEvent, StoredEvent, StoredEvent]
    assert.equal([started.cause, end.cause], [made.id, started.id])
    assert.is(made.scope, b.workspace)
    return made
  }
  assert.match(chain(byHand.id).cause ?? '', /^req_/)
  assert.is(chain(byHand.id).actor.id, 'daemon-control')
  const put = events.find(e => e.name === 'record.put' && e.subject === 'automation.job/demo')
  assert.is(chain(bySchedule.id).cause, put?.id)
  assert.is(b.sessions.created[0]?.cause, chain(byHand.id).id)
  await b.end()
})

test('the run records how a turn failed, with the code first', async () => {
  const b = await bench()
  await b.put('demo', hourly())
  const first = await trigger(b)
  await b.until(async () => b.sessions.prompts.length === 1, 'the prompt runs')
  b.sessions.finish(b.sessions.created[0]?.id ?? '', failed('it was too hard'))
  const failure = await ended(b, first.id)
  assert.equal([failure.status, failure.error], ['failed', 'prompt_failure: it was too hard'])
  const { id, error, started_at } = failure
  assert.equal((await b.job('demo')).last_run, { id, status: 'failed', error, started_at })
  assert.is(b.sessions.stops.at(-1)?.reason, 'error')

  const second = await trigger(b)
  await b.until(async () => b.sessions.prompts.length === 2, 'the prompt runs')
  b.sessions.finish(b.sessions.created[1]?.id ?? '', failed('the process ended with code 1'), true)
  assert.is((await ended(b, second.id)).error, 'agent_crashed: the process ended with code 1')

  b.sessions.refusal = new Fault('agent_not_found', 404, 'there is no agent "report"')
  const third = await ended(b, (await trigger(b)).id)
  assert.equal(
    [third.status, third.error, third.session_id],
    ['failed', 'agent_not_found: there is no agent "report"', undefined],
  )

  b.sessions.refusal = undefined
  b.sessions.answer = () => ({ status: 'canceled', turnId: 'trn_1' })
  assert.is((await ended(b, (await trigger(b)).id)).status, 'canceled')

  b.sessions.answer = () => completed
  b.sessions.stopError = new Error('it does not go')
  const fifth = await ended(b, (await trigger(b)).id)
  assert.equal([fifth.status, fifth.error], ['failed', 'session_stop_failed: it does not go'])
  await b.end()
})

test('a run with an expired question fails without a retry, and doctor warns until a later run succeeds', async () => {
  const b = await bench()
  await b.put('demo', { ...hourly(), retry: { strategy: 'backoff', max_retries: 3, base_delay: '1s' } })
  const warnings = async () =>
    (await b.request('GET', '/api/doctor')).body.items.filter((item: { code: string }) =>
      /^automation_/.test(item.code),
    )
  b.sessions.answer = () => ({ ...completed, expired: 2 })
  const run = await ended(b, (await trigger(b)).id)
  assert.equal([run.status, run.error], ['failed', 'question_expired: 2 questions expired without an answer'])
  await b.clock.advance(10_000)
  assert.is((await b.request('GET', '/api/automation/runs')).body.runs.length, 1)
  const [warning, ...others] = await warnings()
  assert.equal([warning.code, warning.severity, others.length], ['automation_question_expired', 'warning', 0])
  b.sessions.answer = () => completed
  await ended(b, (await trigger(b)).id)
  assert.equal(await warnings(), [])
  await b.end()
})

test('a session that does not stop within ten seconds fails its run', async () => {
  const b = await bench()
  await b.put('demo', hourly())
  const run = await trigger(b)
  await b.until(async () => b.sessions.prompts.length === 1, 'the prompt runs')
  b.sessions.hangs = true
  b.sessions.finish(b.sessions.created[0]?.id ?? '', completed)
  await b.clock.advance(9000)
  assert.is((await b.request('GET', `/api/automation/runs/${run.id}`)).body.run.status, 'running')
  await b.clock.advance(2000)
  const late = await ended(b, run.id)
  assert.equal([late.status, late.error.split(':')[0]], ['failed', 'session_stop_failed'])
  await b.sessions.release()
  await b.end()
})

test('a run with an unavailable target fails with the reason', async () => {
  const b = await bench()
  await b.put('task', { name: 't', task: { title: 'x' } })
  await b.put('loop', { name: 'l', loop_target: { loop_name: 'l', workspace_id: b.workspace } })
  const task = await ended(b, (await trigger(b, 'task')).id)
  assert.equal([task.status, task.error.split(':')[0]], ['failed', 'tasks_unavailable'])
  assert.match((await ended(b, (await trigger(b, 'loop')).id)).error, 'loops_unavailable: ')
  assert.is((await b.job('loop')).target_kind, 'loop')
  assert.equal(b.sessions.created, [])
  await b.end()
})

test('a global job runs in the workspace scratch', async () => {
  const b = await bench()
  b.sessions.answer = () => completed
  await b.put('demo', hourly(), 0, { kind: 'global' })
  await ended(b, (await trigger(b)).id)
  assert.is(b.sessions.created[0]?.workspaceId, SCRATCH_ID)
  await b.end()
})

test('global jobs of an older home stay in the workspace where they ran until they are created again', async () => {
  const b = await bench()
  await b.put('demo', hourly(), 0, { kind: 'global' })
  await b.kernel.close()
  const forget = "DROP TABLE automation_place; DELETE FROM kernel_migration WHERE id = '011-place'"
  execFileSync('sqlite3', [path.join(b.home, 'svc.db'), forget])
  const next = await bench({ home: b.home })
  next.sessions.answer = () => completed
  await ended(next, (await trigger(next)).id)
  assert.is(next.sessions.created[0]?.workspaceId, b.workspace)
  const { items } = (await next.request('GET', '/api/doctor?only=automation')).body
  const [kept] = items.filter(({ code }: { code: string }) => code === 'automation_place_kept')
  assert.match(kept.message, /^demo run in workspace w: /)

  assert.is((await next.request('DELETE', '/api/automation/jobs/demo')).status, 204)
  await next.put('demo', hourly(), 0, { kind: 'global' })
  await ended(next, (await trigger(next)).id)
  assert.is(next.sessions.created[1]?.workspaceId, SCRATCH_ID)
  await next.end()
})

test('backoff: every retry is a separate run with a longer delay, up to the limit', async () => {
  const b = await bench()
  b.sessions.answer = () => failed('no')
  await b.put('demo', hourly({ retry: { strategy: 'backoff', max_retries: 2, base_delay: '10s' } }))
  await trigger(b)
  const count = (n: number) => async () => {
    const runs = await b.runs()
    return runs.length === n && runs.every(run => run.ended_at) && runs
  }
  await b.until(count(1), 'the first failed')
  await b.clock.advance(9000)
  assert.is((await b.runs()).length, 1)
  await b.after(1000, count(2), 'the second failed')
  await b.clock.advance(19_000)
  assert.is((await b.runs()).length, 2)
  const runs = await b.after(1000, count(3), 'the third failed')
  assert.equal(
    runs.map((run: { attempt: number }) => run.attempt),
    [1, 2, 3],
  )
  assert.is(runs[2].metadata.retry_of, runs[1].id)
  await b.clock.advance(HOUR / 2)
  assert.is((await b.runs()).length, 3)
  await b.end()
})

test('a retry refused by a limit is recorded as canceled with the reason', async () => {
  const b = await bench()
  b.sessions.answer = () => failed('no')
  await b.put('demo', hourly({ retry: { strategy: 'backoff', max_retries: 2, base_delay: '10s' } }))
  const { id: first } = await trigger(b)
  await b.until(async () => (await b.runs()).every(run => run.ended_at), 'the first failed')
  b.sessions.answer = () => undefined
  const { id: second } = await trigger(b)
  await b.until(async () => (await b.runs()).at(-1).status === 'running', 'another run goes on')
  const [, , third] = await b.after(
    10_000,
    async () => (await b.runs()).length === 3 && (await b.runs()),
    'it was tried',
  )
  assert.equal(
    [third.status, third.attempt, third.metadata, third.error],
    [
      'canceled',
      2,
      { retry_of: first, reason: 'self_overlap' },
      'self_overlap: the previous run of this job is still running',
    ],
  )
  await b.clock.advance(HOUR / 2)
  assert.equal((await b.runs()).length, 3)
  assert.is((await b.request('GET', `/api/automation/runs/${second}`)).body.run.status, 'running')
  await b.end()
})

test('a draining daemon refuses manual runs, and a scheduled run fails with that cause', async () => {
  const b = await bench()
  await b.put('demo', hourly())
  assert.is((await b.request('POST', '/api/drain')).status, 200)
  const reply = await b.request('POST', '/api/automation/jobs/demo/trigger')
  assert.equal([reply.status, reply.body.code], [503, 'draining'])
  assert.equal(await b.runs(), [])
  b.sessions.refusal = new Fault('draining', 503, 'daemon is draining')
  const run = await b.after(HOUR, async () => (await b.runs()).find(r => r.ended_at), 'it failed')
  assert.equal([run.status, run.error], ['failed', 'draining: daemon is draining'])
  assert.equal([run.delivery_error, run.delivery_error_at], [run.error, run.ended_at])
  await b.end()
})

test('a veto cancels a claimed run, and nothing is started', async () => {
  const { tap } = surfaceOf<object>()
  const veto = definePlugin({
    name: 'veto',
    version: '1.0.0',
    requires: { automation: Automation },
    service: async () => class {},
  }).surface({
    taps: [
      tap(
        Automation,
        service => service.preFire,
        () => async fire =>
          fire.agentName === 'report' ? new Fault('not_now', 409, `not now, ${fire.jobName}`) : undefined,
      ),
    ],
  })
  const b = await bench({ plugins: [veto] })
  await b.put('demo', hourly())
  const run = await ended(b, (await trigger(b)).id)
  assert.equal([run.status, run.error], ['canceled', 'not_now: not now, nightly report'])
  assert.equal(b.sessions.created, [])
  await b.end()
})

test('a clean stop cancels open runs and stops their sessions with reason shutdown', async () => {
  const b = await bench()
  await b.put('demo', hourly())
  const run = await trigger(b)
  await b.until(async () => b.sessions.prompts.length === 1, 'the prompt runs')
  assert.equal(await b.kernel.close(), [])
  assert.equal(b.sessions.stops.map(stop => stop.reason)[0], 'shutdown')
  const next = await bench({ home: b.home })
  const left = (await next.request('GET', `/api/automation/runs/${run.id}`)).body.run
  assert.equal([left.status, left.error.split(':')[0]], ['canceled', 'shutdown'])
  await next.end()
  await b.end()
})

test.run()
