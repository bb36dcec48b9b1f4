import { rm } from 'node:fs/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { boot } from '../../../harness/kernel.js'
import { type Bench, bench, hourly, START } from './bench.js'
import { completed } from './fake-sessions.js'

const HOUR = 3_600_000
const at = (ms: number) => new Date(START + ms).toISOString()

/** A daemon on the home of `b` as a kill would leave it, started `ms` after `START`. */
async function killed(b: Bench, ms: number): Promise<Bench> {
  const home = await b.snapshot()
  const next = await bench({ home, clock: new VirtualClock(START + ms) })
  return next
}

async function endAll(...benches: Bench[]): Promise<void> {
  for (const b of benches) {
    await b.end()
    await rm(b.home, { recursive: true, force: true })
  }
}

test('the cursor survives a clean restart, and past occurrences do not fire again', async () => {
  const b = await bench()
  b.sessions.answer = () => completed
  await b.put('demo', hourly())
  await b.after(HOUR, async () => (await b.runs())[0]?.status === 'completed', 'the first has run')
  const home = await b.snapshot()
  await b.kernel.close()
  const next = await bench({ home, clock: new VirtualClock(START + 1.5 * HOUR) })
  next.sessions.answer = () => completed
  assert.is((await next.job('demo')).next_run, at(2 * HOUR))
  await next.after(HOUR / 2, async () => (await next.runs()).length === 2, 'the second has run')
  assert.equal(
    (await next.runs()).map(run => run.scheduled_at),
    [at(HOUR), at(2 * HOUR)],
  )
  assert.is((await next.job('demo')).scheduler.misfire_count, 0)
  await endAll(b, next)
})

const MISSED = [
  // policy, grace, down until, what becomes of it
  ['skip_missed', undefined, 5.5, [['canceled', 5]]],
  ['skip_missed', 3600, 5.5, [['completed', 5]]],
  ['coalesce', undefined, 5.5, [['completed', 5]]],
  ['run_once_on_catchup', undefined, 5.5, [['completed', 5]]],
  [
    'replay',
    undefined,
    3.5,
    [
      ['completed', 1],
      ['completed', 2],
      ['completed', 3],
    ],
  ],
] as const
for (const [policy, grace, hours, expected] of MISSED) {
  test(`missed while down: ${policy}${grace ? ` with ${grace} s of grace` : ''}`, async () => {
    const b = await bench()
    const schedule = {
      mode: 'every',
      interval: '1h',
      catch_up_policy: policy,
      ...(grace ? { misfire_grace_seconds: grace } : {}),
    }
    await b.put('demo', hourly({ schedule }))
    const next = await killed(b, hours * HOUR)
    next.sessions.answer = () => completed
    // Runs of the boot are dispatched before the test can say how they end.
    for (const { id } of next.sessions.prompts) next.sessions.finish(id, completed)
    const runs = await next.until(async () => {
      const seen = await next.runs()
      return seen.length === expected.length && seen.every(run => run.ended_at) && seen
    }, 'the past is dealt with')
    assert.equal(
      runs.map(run => [run.status, run.scheduled_at]),
      expected.map(([status, hour]) => [status, at(hour * HOUR)]),
    )
    if (policy === 'skip_missed' && !grace) assert.is(runs[0].metadata.reason, 'misfire_grace_exceeded')
    const job = await next.job('demo')
    assert.is(job.next_run, at(Math.ceil(hours) * HOUR))
    assert.ok(job.scheduler.misfire_count >= 1)
    // A third start finds nothing missed.
    const third = await killed(next, hours * HOUR + 1)
    assert.is((await third.runs()).length, expected.length)
    assert.is((await third.job('demo')).next_run, job.next_run)
    await endAll(b, next, third)
  })
}

test('a run claimed before a kill fails and is not dispatched again', async () => {
  const b = await bench()
  b.sessions.hangs = true
  await b.put('demo', hourly())
  await b.after(HOUR, async () => (await b.runs())[0]?.status === 'scheduled', 'it is claimed')
  const next = await killed(b, HOUR + 1000)
  const [run, ...others] = await next.runs()
  assert.equal(others, [])
  assert.equal([run.status, run.error.split(':')[0], run.session_id], ['failed', 'daemon_restarted', undefined])
  assert.match(run.error, 'the run is not retried')
  assert.is(run.delivery_error, run.error)
  assert.ok(run.ended_at)
  assert.is((await next.job('demo')).next_run, at(2 * HOUR))
  const failures = async () => (await next.job('demo')).scheduler.consecutive_resume_failures
  assert.is(await failures(), 1)
  next.sessions.answer = () => completed
  await next.after(HOUR, async () => (await next.runs()).length === 2, 'the next one runs')
  await next.until(async () => next.sessions.created.length === 1, 'its session is made')
  await next.until(async () => (await failures()) === 0, 'a run that completes ends the row of failures')
  await b.sessions.release()
  await endAll(b, next)
})

test('a run interrupted by a kill fails with its session and is not run again', async () => {
  const b = await bench()
  await b.put('demo', hourly())
  await b.after(HOUR, async () => b.sessions.prompts.length === 1, 'it runs')
  const next = await killed(b, HOUR + 1000)
  const [run] = await next.runs()
  assert.equal([run.status, run.error], ['failed', 'agent_crashed: daemon crashed while session active'])
  assert.is(run.session_id, b.sessions.created[0]?.id)
  assert.equal(next.sessions.created, [])
  assert.is((await next.job('demo')).next_run, at(2 * HOUR))
  const { items } = (await next.request('GET', '/api/doctor?only=scheduler')).body
  assert.ok(items.some((item: { code: string }) => item.code === 'automation_run_failed'))
  await endAll(b, next)
})

test('a run whose session ended before a kill is completed', async () => {
  const b = await bench()
  await b.put('demo', hourly())
  await b.after(HOUR, async () => b.sessions.prompts.length === 1, 'it runs')
  await b.sessions.end(b.sessions.created[0]?.id ?? '', 'completed')
  const next = await killed(b, HOUR + 1000)
  assert.equal(
    (await next.runs()).map(run => run.status),
    ['completed'],
  )
  await endAll(b, next)
})

test('a record deleted while the daemon was down leaves no cursor', async () => {
  const b = await bench()
  await b.put('demo', hourly())
  const home = await b.snapshot()
  const { default: resources } = await import('../../../../plugins/platform/resources/index.js')
  const { default: daemon } = await import('../../../../plugins/desk/daemon/index.js')
  const { default: workspaces } = await import('../../../../plugins/desk/workspaces/index.js')
  const without = await boot({ home, plugins: [daemon, resources, workspaces] })
  assert.is(
    (await without.request('DELETE', '/api/resources/automation.job/demo', { expected_version: 1 })).status,
    204,
  )
  await without.close()
  const next = await bench({ home, clock: new VirtualClock(START + 5 * HOUR) })
  await next.clock.advance(HOUR)
  assert.equal(await next.runs(), [])
  assert.is((await next.request('GET', '/api/status')).body.automation.jobs.total, 0)
  await endAll(b, next)
})

test.run()
