import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { turn } from '../../../../kernel/plugin.js'
import { bench, hourly, START } from './bench.js'
import { completed } from './fake-sessions.js'

const HOUR = 3_600_000
const at = (ms: number) => new Date(START + ms).toISOString()

test('every: first at now + interval, then on the grid for days, each occurrence once', async () => {
  const b = await bench()
  b.sessions.answer = () => completed
  assert.is((await b.put('demo', hourly())).status, 201)
  assert.is((await b.job('demo')).next_run, at(HOUR))
  for (let hour = 1; hour <= 50; hour++) {
    const runs = await b.after(
      HOUR,
      async () => {
        const seen = await b.runs('demo')
        return seen.length === hour && seen.at(-1).status === 'completed' && seen
      },
      `run ${hour} has completed`,
    )
    assert.is(runs.at(-1).scheduled_at, at(hour * HOUR))
  }
  const runs = await b.runs('demo')
  assert.is(new Set(runs.map(run => run.id)).size, 50)
  for (const run of runs) assert.match(run.id, /^run_[0-9a-f]{24}$/)
  assert.is(runs[0].id.slice(4), runs[0].fire_id.slice(5))
  const job = await b.job('demo')
  assert.is(job.next_run, at(51 * HOUR))
  assert.is(job.scheduler.misfire_count, 0)
  assert.is(b.sessions.created.length, 50)
  assert.equal([b.sessions.created[0]?.agentName, b.sessions.created[0]?.workspaceId], ['report', b.workspace])
  assert.is(b.sessions.prompts[0]?.text, 'Write the report.')
  assert.equal(new Set(b.sessions.stops.map(stop => stop.reason)), new Set(['completed']))
  await b.end()
})

test('cron in a time zone, and at, use the same heap', async () => {
  const b = await bench({ config: { automation: { timezone: 'Europe/Paris' } } })
  b.sessions.answer = () => completed
  await b.put('cron', hourly({ name: 'c', schedule: { mode: 'cron', expr: '30 2 * * *' } }))
  await b.put('once', hourly({ name: 'o', schedule: { mode: 'at', time: '2030-01-01T03:00:00+01:00' } }))
  assert.is((await b.job('cron')).next_run, at(1.5 * HOUR))
  assert.is((await b.job('once')).next_run, at(2 * HOUR))
  const status = (await b.request('GET', '/api/status')).body.automation
  assert.equal([status.next_fire, status.jobs.total, status.scheduler_running], [at(1.5 * HOUR), 2, true])
  assert.equal(
    status.scheduled_jobs.map((s: { job_id: string }) => s.job_id),
    ['cron', 'once'],
  )
  await b.after(2 * HOUR, async () => (await b.runs()).length === 2, 'both ran')
  assert.is((await b.job('cron')).next_run, at(25.5 * HOUR))
  const once = await b.job('once')
  assert.equal([once.next_run, once.scheduler.registered, once.scheduler.misfire_count], [null, false, 0])
  await b.put('once', hourly({ name: 'o2', schedule: { mode: 'at', time: '2030-01-01T03:00:00+01:00' } }), 1)
  await b.until(async () => (await b.job('once')).name === 'o2', 'the name is new')
  assert.is((await b.job('once')).scheduler.misfire_count, 0)
  await b.put('late', hourly({ name: 'l', schedule: { mode: 'at', time: '2029-01-01T00:00:00Z' } }))
  const late = await b.job('late')
  assert.equal([late.next_run, late.scheduler.misfire_count], [null, 1])
  await b.end()
})

test('self overlap: the occurrence is recorded as canceled and the cursor advances', async () => {
  const b = await bench()
  await b.put('demo', hourly())
  await b.after(HOUR, async () => b.sessions.prompts.length === 1, 'the first prompt runs')
  const skipped = await b.after(HOUR, async () => (await b.runs('demo'))[1], 'the second is recorded')
  assert.equal([skipped.status, skipped.metadata.reason], ['canceled', 'self_overlap'])
  assert.is(skipped.ended_at, at(2 * HOUR))
  assert.is((await b.job('demo')).next_run, at(3 * HOUR))
  b.sessions.finish(b.sessions.created[0]?.id ?? '', completed)
  await b.until(async () => (await b.runs('demo'))[0].status === 'completed', 'the first has ended')
  b.sessions.answer = () => completed
  const third = await b.after(HOUR, async () => (await b.runs('demo'))[2], 'the third ran')
  assert.is(third.scheduled_at, at(3 * HOUR))
  await b.end()
})

test('fire limit: a canceled run, and the cursor moves to the next allowed time', async () => {
  const b = await bench()
  b.sessions.answer = () => completed
  await b.put('demo', hourly({ schedule: { mode: 'every', interval: '10m' }, fire_limit: { max: 2, window: '1h' } }))
  for (const count of [1, 2, 3]) {
    await b.after(
      HOUR / 6,
      async () => {
        const runs = await b.runs('demo')
        return runs.length === count && runs.every(run => run.ended_at)
      },
      `${count} runs`,
    )
  }
  const [first, , third] = await b.runs('demo')
  assert.equal([first.status, third.status, third.metadata.reason], ['completed', 'canceled', 'fire_limit'])
  // The first one leaves the window at 1:10.
  assert.is((await b.job('demo')).next_run, at(7 * (HOUR / 6)))
  assert.is(third.metadata.resumes_at, at(7 * (HOUR / 6)))
  const reply = await b.request('POST', '/api/automation/jobs/demo/trigger')
  assert.equal([reply.status, reply.body.code], [409, 'fire_limit'])
  assert.ok(Number(reply.headers['retry-after']) > 0)
  await b.after(4 * (HOUR / 6), async () => (await b.runs('demo')).length === 4, 'it goes on')
  await b.end()
})

test('concurrency: without a free slot a scheduled run waits and a manual run returns 409', async () => {
  const b = await bench({ config: { automation: { max_concurrent_jobs: 1 } } })
  await b.put('a', hourly({ name: 'a' }))
  await b.put('b', hourly({ name: 'b' }))
  await b.after(
    HOUR,
    async () => (await b.runs()).length === 2 && b.sessions.prompts.length === 1,
    'one runs, one does not',
  )
  const [a, other] = [(await b.runs('a'))[0], (await b.runs('b'))[0]]
  assert.equal([a.status, other.status, other.metadata?.reason], ['running', 'scheduled', undefined])
  const reply = await b.request('POST', '/api/automation/jobs/b/trigger')
  assert.equal([reply.status, reply.body.code], [409, 'concurrency_limit'])
  await b.end()
})

test('a changed schedule restarts, another change does not; a disabled job is not due', async () => {
  const b = await bench()
  b.sessions.answer = () => completed
  await b.put('demo', hourly())
  await b.clock.advance(HOUR / 2)
  await b.put('demo', hourly({ prompt: 'Another.' }), 1)
  await b.until(async () => (await b.job('demo')).prompt === 'Another.', 'the prompt changed')
  assert.is((await b.job('demo')).next_run, at(HOUR))
  await b.put('demo', hourly({ schedule: { mode: 'every', interval: '2h' } }), 2)
  await b.until(async () => (await b.job('demo')).next_run === at(2.5 * HOUR), 'it is due two hours from the change')
  await b.put('demo', hourly({ enabled: false, schedule: { mode: 'every', interval: '2h' } }), 3)
  await b.until(async () => (await b.job('demo')).next_run === null, 'it is not due any more')
  await b.clock.advance(10 * HOUR)
  assert.equal(await b.runs('demo'), [])
  await b.put('demo', hourly({ schedule: { mode: 'every', interval: '2h' } }), 4)
  await b.until(async () => (await b.job('demo')).next_run === at(12.5 * HOUR), 'it begins from now')
  await b.request('DELETE', '/api/resources/automation.job/demo', { expected_version: 5 })
  await b.until(async () => (await b.request('GET', '/api/status')).body.automation.jobs.total === 0, 'it is gone')
  await b.clock.advance(10 * HOUR)
  assert.equal(await b.runs(), [])
  await b.end()
})

test('an at time that passed while its job was disabled is one misfire, unless it ran', async () => {
  const b = await bench()
  b.sessions.answer = () => completed
  const once = (enabled: boolean) => hourly({ enabled, schedule: { mode: 'at', time: at(HOUR) } })
  const misfires = async () => (await b.job('demo')).scheduler.misfire_count
  let version = 0
  const put = async (enabled: boolean) => {
    await b.put('demo', once(enabled), version++)
    await b.until(async () => (await b.job('demo')).enabled === enabled, `enabled is ${enabled}`)
  }
  await put(true)
  await put(false)
  await b.clock.advance(2 * HOUR)
  await put(true)
  await b.until(async () => (await misfires()) === 1, 'it counts')
  await put(false)
  await put(true)
  assert.is(await misfires(), 1)
  assert.equal(await b.runs(), [])
  await b.put('ran', hourly({ name: 'ran', schedule: { mode: 'at', time: at(3 * HOUR) } }))
  await b.after(HOUR, async () => (await b.runs())[0]?.status === 'completed', 'the other one ran')
  await b.request('PATCH', '/api/automation/jobs/ran', { enabled: false })
  await b.request('PATCH', '/api/automation/jobs/ran', { enabled: true })
  assert.is((await b.job('ran')).scheduler.misfire_count, 0)
  await b.end()
})

test('an occurrence is claimed once, even when the clock is set back and it recurs', async () => {
  const b = await bench()
  b.sessions.answer = () => completed
  await b.put('demo', hourly())
  const [run] = await b.after(HOUR, async () => (await b.runs())[0]?.ended_at && (await b.runs()), 'it ran')
  b.clock.jump(-HOUR / 2)
  await b.put('demo', hourly({ schedule: { mode: 'at', time: at(HOUR) } }), 1)
  await b.until(async () => (await b.job('demo')).next_run === at(HOUR), 'it is due at the same instant')
  await b.after(HOUR, async () => (await b.job('demo')).next_run === null, 'the cursor went on')
  assert.equal(
    (await b.runs()).map(seen => seen.id),
    [run.id],
  )
  assert.is(b.sessions.created.length, 1)
  await b.end()
})

test('a machine that slept: one occurrence within its grace, none far beyond it, and never a burst', async () => {
  const b = await bench()
  b.sessions.answer = () => completed
  await b.put('skip', hourly({ name: 's' }))
  await b.put('once', hourly({ name: 'o', schedule: { mode: 'every', interval: '1h', catch_up_policy: 'coalesce' } }))
  b.clock.jump(5.5 * HOUR)
  await b.after(61_000, async () => (await b.runs()).length === 2, 'the loop noticed')
  const [skip] = await b.runs('skip')
  assert.equal(
    [skip.status, skip.metadata.reason, skip.scheduled_at],
    ['canceled', 'misfire_grace_exceeded', at(5 * HOUR)],
  )
  const once = await b.until(async () => {
    const [run] = await b.runs('once')
    return run.status === 'completed' && run
  }, 'the coalesced one has run')
  assert.is(once.scheduled_at, at(5 * HOUR))
  // Both say what else they stand for.
  assert.equal([skip.metadata.missed_since, once.metadata.missed_since], [at(HOUR), at(HOUR)])
  assert.equal([(await b.job('skip')).next_run, (await b.job('once')).next_run], [at(6 * HOUR), at(6 * HOUR)])
  await b.end()
})

test('an invalid time zone prevents the start and is named', async () => {
  const boots = bench({ config: { automation: { timezone: 'Mars/Olympus' } } })
  const error = await boots.then(
    () => 'it started',
    reason => String(reason),
  )
  assert.match(error, /automation\.timezone/)
  assert.match(error, /IANA/)
})

test('disabled automation fires nothing and reports it', async () => {
  const b = await bench({ config: { automation: { enabled: false } } })
  await b.put('demo', hourly())
  await b.clock.advance(5 * HOUR)
  assert.equal(await b.runs(), [])
  const reply = await b.request('POST', '/api/automation/jobs/demo/trigger')
  assert.equal([reply.status, reply.body.code], [503, 'automation_disabled'])
  const status = (await b.request('GET', '/api/status')).body.automation
  assert.equal([status.enabled, status.scheduler_running], [false, false])
  const { items } = (await b.request('GET', '/api/doctor?only=scheduler')).body
  assert.is(items[0].code, 'scheduler_paused')
  await b.end()
})

test('a full disk defers claims, and due jobs run once there is space', async () => {
  const plenty = 1024 ** 3
  const room = { free: plenty }
  const b = await bench({ freeBytes: async () => room.free })
  b.sessions.answer = () => completed
  await b.put('demo', hourly())
  room.free = 0
  await b.clock.advance(HOUR)
  await b.until(async () => b.log.some(line => /could not be claimed/.test(line.msg)), 'the claim was refused')
  assert.equal(await b.runs('demo'), [])
  room.free = plenty
  const runs = await b.after(
    10_000,
    async () => (await b.runs('demo')).some(r => r.status === 'completed') && b.runs('demo'),
    'it ran',
  )
  assert.is(runs.length, 1)
  await b.end()
})

test('jobs due at the same instant start over several turns of the event loop', async () => {
  const b = await bench({ config: { automation: { max_concurrent_jobs: 1000 } } })
  b.sessions.answer = () => completed
  const jobs = 100
  const made: number[] = []
  let now = 0
  b.sessions.onCreate = () => {
    made[now] = (made[now] ?? 0) + 1
  }
  for (let n = 0; n < jobs; n++) await b.put(`j${n}`, hourly({ name: `j${n}` }))
  let watching = true
  const watched = (async () => {
    for (; watching; now++) await turn()
  })()
  await b.after(
    HOUR,
    async () => (await b.runs()).filter(({ status }) => status === 'completed').length === jobs,
    'all completed',
  )
  watching = false
  await watched
  const counts = made.filter(count => count > 0)
  assert.is(
    counts.reduce((sum, count) => sum + count, 0),
    jobs,
  )
  assert.ok(Math.max(...counts) <= 16, `${counts}`)
  await b.end()
})

test.run()
