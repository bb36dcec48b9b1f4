import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { bench, hourly, START } from './bench.js'
import { completed } from './fake-sessions.js'

const HOUR = 3_600_000
const at = (ms: number) => new Date(START + ms).toISOString()

test('a corrected clock that was a year ahead silences no job', async () => {
  const b = await bench()
  b.sessions.answer = () => completed
  const YEAR = 365 * 24 * HOUR
  b.clock.jump(YEAR)
  await b.put('every', hourly({ name: 'e' }))
  await b.put('cron', hourly({ name: 'c', schedule: { mode: 'cron', expr: '30 * * * *' } }))
  await b.put('once', hourly({ name: 'o', schedule: { mode: 'at', time: at(HOUR / 4) } }))
  assert.is((await b.job('every')).next_run, at(YEAR + HOUR))
  assert.is((await b.job('once')).next_run, null)
  const all = async (count: number) => {
    const runs = await b.runs()
    return runs.length === count && runs.every(run => run.ended_at) && runs
  }
  await b.after(HOUR, () => all(2), 'both ran')
  b.clock.jump(-YEAR - HOUR)
  await b.clock.advance(60_000)
  await b.until(async () => (await b.job('every')).next_run === at(HOUR), 'it is planned by the present clock')
  assert.is((await b.job('cron')).next_run, at(HOUR / 2))
  assert.is((await b.job('once')).next_run, at(HOUR / 4))
  await b.after(HOUR / 4 - 60_000, () => all(3), 'the one at its time ran')
  await b.after(HOUR / 4, () => all(4), 'the cron job ran')
  const runs = await b.after(HOUR / 2, () => all(5), 'all three ran')
  assert.equal(
    runs.slice(2).map(run => [run.job_id, run.status, run.scheduled_at]),
    [
      ['once', 'completed', at(HOUR / 4)],
      ['cron', 'completed', at(HOUR / 2)],
      ['every', 'completed', at(HOUR)],
    ],
  )
  await b.end()
})

test('after the clock is set back by hours, past occurrences do not run again and later ones do', async () => {
  const b = await bench()
  b.sessions.answer = () => completed
  await b.put('demo', hourly({ fire_limit: { max: 4, window: '1h' } }))
  const done = async (count: number) => {
    const runs = await b.runs()
    return runs.length === count && runs.every(run => run.status === 'completed') && runs
  }
  for (const n of [1, 2, 3]) await b.after(HOUR, () => done(n), `${n} ran`)
  b.clock.jump(-2.5 * HOUR)
  await b.clock.advance(60_000)
  for (let n = 0; n < 5; n++) {
    await b.after(
      HOUR / 2,
      async () => Date.parse((await b.request('GET', '/api/status')).body.automation.next_fire) > b.clock.now(),
      'it was passed over',
    )
  }
  assert.equal(
    (await b.until(() => done(3), 'all have ended')).map(run => run.scheduled_at),
    [at(HOUR), at(2 * HOUR), at(3 * HOUR)],
  )
  const runs = await b.after(HOUR, () => done(4), 'the next one ran')
  assert.is(runs[3].scheduled_at, at(4 * HOUR))
  assert.is((await b.job('demo')).scheduler.misfire_count, 0)
  await b.end()
})

test('after the clock is set back to before the start, occurrences on time are not misfires', async () => {
  const b = await bench()
  b.sessions.answer = () => completed
  b.clock.jump(-5 * HOUR)
  await b.put('demo', hourly({ schedule: { mode: 'at', time: at(-4 * HOUR) } }))
  const [run] = await b.after(HOUR + 30_000, async () => (await b.runs())[0]?.ended_at && (await b.runs()), 'it ran')
  assert.is(run.status, 'completed')
  assert.is((await b.job('demo')).scheduler.misfire_count, 0)
  await b.end()
})

test('runs in the future of a clock that was set back do not count toward the fire limit', async () => {
  const b = await bench()
  b.sessions.answer = () => completed
  await b.put('demo', hourly({ fire_limit: { max: 1, window: '1h' } }))
  assert.is((await b.request('POST', '/api/automation/jobs/demo/trigger')).status, 200)
  await b.until(async () => (await b.runs())[0]?.ended_at, 'it ran')
  assert.is((await b.request('POST', '/api/automation/jobs/demo/trigger')).status, 409)
  b.clock.jump(-24 * HOUR)
  assert.is((await b.request('POST', '/api/automation/jobs/demo/trigger')).status, 200)
  await b.end()
})

test('correcting a clock that was never set does not replay decades', async () => {
  const b = await bench()
  b.sessions.answer = () => completed
  const replay = (more: object) =>
    hourly({ ...more, schedule: { mode: 'every', interval: '1h', catch_up_policy: 'replay' } })
  await b.put('old', replay({ name: 'old' }))
  const done = async (count: number) => {
    const runs = await b.runs()
    return runs.length === count && runs.every(run => run.ended_at) && runs
  }
  await b.after(HOUR, () => done(1), 'it ran by the right clock')
  b.clock.jump(-b.clock.now())
  await b.clock.advance(60_000)
  await b.until(async () => Date.parse((await b.job('old')).next_run) < HOUR * 24, 'it is planned by the wrong clock')
  await b.put('new', replay({ name: 'new' }))
  await b.put(
    'cron',
    hourly({ name: 'cron', schedule: { mode: 'cron', expr: '0 * * * *', catch_up_policy: 'replay' } }),
  )
  b.clock.jump(START + 3.5 * HOUR)
  await b.clock.advance(60_000)
  const runs = await b.until(() => done(3), 'what was missed since its last run is replayed')
  assert.equal(
    runs.map(run => [run.job_id, run.scheduled_at]),
    [
      ['old', at(HOUR)],
      ['old', at(2 * HOUR)],
      ['old', at(3 * HOUR)],
    ],
  )
  for (const id of ['new', 'cron']) {
    const next = Date.parse((await b.job(id)).next_run)
    assert.ok(next > b.clock.now() && next <= b.clock.now() + HOUR, `${id}: ${new Date(next)}`)
  }
  await b.end()
})

test('after the machine slept, replay runs every missed occurrence, the last one too', async () => {
  const b = await bench()
  const schedule = { mode: 'every', interval: '1h', catch_up_policy: 'replay' }
  await b.put('demo', hourly({ schedule }))
  b.clock.jump(3.5 * HOUR)
  await b.clock.advance(61_000)
  for (let n = 1; n <= 3; n++) {
    const run = await b.until(async () => (await b.runs())[n - 1], `run ${n} was claimed`)
    assert.equal([run.scheduled_at, run.metadata?.reason], [at(n * HOUR), undefined])
    await b.until(async () => b.sessions.prompts.length === n, 'its turn began')
    b.sessions.finish(b.sessions.prompts.at(-1)?.id ?? '', completed)
  }
  await b.until(async () => (await b.runs()).every(run => run.status === 'completed'), 'all ran')
  assert.is((await b.job('demo')).next_run, at(4 * HOUR))
  await b.end()
})

test.run()
