import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Reply } from '../../../harness/kernel.js'
import { type Bench, bench, hourly, START } from './bench.js'
import { completed } from './fake-sessions.js'

const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000]
const at = (ms: number) => new Date(START + ms).toISOString()

const simulated = async (b: Bench, query: string): Promise<Reply> => {
  const reply = await b.request('GET', `/api/automation/simulation?${query}`)
  assert.is(reply.status, 200, JSON.stringify(reply.body))
  return reply.body.simulation
}

test('a simulation reports fires and skips with their reasons, and changes nothing', async () => {
  const b = await bench({ config: { automation: { max_concurrent_jobs: 2 } } })
  await b.put('one', hourly({ name: 'one', fire_limit: { max: 3, window: '5h' } }))
  await b.put('slow', hourly({ name: 'slow', schedule: { mode: 'cron', expr: '0 */6 * * *' } }))
  await b.put('third', hourly({ name: 'third', schedule: { mode: 'cron', expr: '0 6 * * *' } }))
  await b.put('off', hourly({ name: 'off', enabled: false }))
  const before = await b.job('one')
  const { jobs } = await simulated(b, 'days=1&run_seconds=60')
  const of = (id: string) => jobs.occasions.filter((one: Reply) => one.job_id === id)
  assert.equal(
    of('one')
      .slice(0, 5)
      .map((one: Reply) => [one.at, one.outcome, one.reason, one.resumes_at]),
    [
      [at(HOUR), 'fires', undefined, undefined],
      [at(2 * HOUR), 'fires', undefined, undefined],
      [at(3 * HOUR), 'fires', undefined, undefined],
      [at(4 * HOUR), 'skips', 'fire_limit', at(6 * HOUR)],
      [at(6 * HOUR), 'fires', undefined, undefined],
    ],
  )
  // At six o'clock there is room for two, in the order of their ids; the third waits until one of them has ended.
  assert.equal(
    of('third').map((one: Reply) => [one.at, one.reason]),
    [[at(6 * HOUR + 60_000), undefined]],
  )
  assert.equal(jobs.silent, [{ job_id: 'off', name: 'off', why: 'disabled' }])
  assert.is(jobs.fires + jobs.skips, jobs.occasions.length)
  assert.equal(await b.job('one'), before)
  assert.equal(await b.runs(), [])
  const { jobs: only } = await simulated(b, 'days=1&only=third&limit=1')
  assert.equal([only.occasions.length, only.unlisted, only.fires], [1, 0, jobs.fires])
  assert.equal(only.silent, [], 'nothing is said of others')
  assert.is((await simulated(b, 'days=1&only=off')).jobs.silent.length, 1)
  for (const query of ['only=nobody', 'only=one&part=triggers']) {
    const { status, body } = await b.request('GET', `/api/automation/simulation?${query}`)
    assert.equal([status, body.code], [400, 'simulation_invalid'])
    assert.match(body.error, /only: (?:job or )?trigger not found: "(?:nobody|one)"/)
  }
  await b.end()
})

test('a simulation and a new job report a minute with more due runs than slots', async () => {
  const b = await bench({ config: { automation: { max_concurrent_jobs: 2 } } })
  const create = async (name: string, schedule: object) => {
    const reply = await b.request('POST', '/api/automation/jobs', { ...hourly({ name }), scope: 'global', schedule })
    assert.is(reply.status, 201, JSON.stringify(reply.body))
    return reply.body
  }
  const daily = { mode: 'cron', expr: '30 9 * * *' }
  assert.is((await create('one', daily)).warnings, undefined)
  const second = await create('two', daily)
  assert.is(second.warnings, undefined)
  const { warnings } = await create('three', daily)
  assert.is(warnings.length, 1)
  assert.match(
    warnings[0],
    /^3 jobs are due at \S+:30Z, and 2 run at once \(automation\.max_concurrent_jobs\); the others wait for at most 10m/,
  )
  assert.is((await create('apart', { mode: 'cron', expr: '31 9 * * *' })).warnings, undefined)
  const { jobs } = await simulated(b, 'days=3')
  assert.equal(
    jobs.crowded.map(({ due }: Reply) => due),
    [3, 3, 3],
  )
  const patched = await b.request('PATCH', `/api/automation/jobs/${second.job.id}`, {
    schedule: { ...daily, expr: '0 10 * * *' },
  })
  assert.is(patched.body.warnings, undefined)
  assert.is((await simulated(b, 'days=3')).jobs.crowded, undefined)
  await b.close()
})

test('a simulation includes retries, overlaps and catch-up after an outage', async () => {
  const b = await bench()
  const retry = { strategy: 'backoff', max_retries: 2, base_delay: '10s' }
  await b.put('fails', hourly({ name: 'fails', schedule: { mode: 'every', interval: '6h' }, retry }))
  const policies = ['skip_missed', 'coalesce', 'replay']
  for (const catch_up_policy of policies)
    await b.put(
      catch_up_policy,
      hourly({ name: catch_up_policy, schedule: { mode: 'every', interval: '5h', catch_up_policy } }),
    )
  const offline = `${at(6 * HOUR + HOUR / 2)}/${at(16 * HOUR)}`
  const { jobs } = await simulated(b, `days=1&run_seconds=30&failing=fails&offline=${encodeURIComponent(offline)}`)
  const lines = (id: string) =>
    jobs.occasions
      .filter((one: Reply) => one.job_id === id && Date.parse(one.at) < START + 17 * HOUR)
      .map((one: Reply) => [one.at, one.attempt, one.reason, one.missed_since])
  assert.equal(lines('fails').slice(0, 3), [
    [at(6 * HOUR), 1, undefined, undefined],
    [at(6 * HOUR + 40_000), 2, undefined, undefined],
    [at(6 * HOUR + 90_000), 3, undefined, undefined],
  ])
  const first = [at(5 * HOUR), 1, undefined, undefined]
  assert.equal(lines('skip_missed'), [first, [at(16 * HOUR), 1, 'misfire_grace_exceeded', at(10 * HOUR)]])
  assert.equal(lines('coalesce'), [first, [at(16 * HOUR), 1, undefined, at(10 * HOUR)]])
  assert.equal(lines('replay'), [
    first,
    [at(16 * HOUR), 1, undefined, undefined],
    [at(16 * HOUR + 30_000), 1, undefined, undefined],
  ])
  for (const wrong of ['yesterday', 'a/b', `${at(2 * HOUR)}/${at(HOUR)}`, `${at(-2 * DAY)}/${at(-DAY)}`]) {
    const reply = await b.request('GET', `/api/automation/simulation?offline=${encodeURIComponent(wrong)}`)
    assert.equal([reply.status, reply.body.code], [400, 'simulation_invalid'], wrong)
  }
  const { jobs: overlapping } = await simulated(b, `days=1&run_seconds=${6 * 3600}&only=coalesce`)
  assert.is(overlapping.occasions[1].reason, 'self_overlap')
  await b.end()
})

test('a simulation replays recorded events through filters, limits and depth of triggers', async () => {
  const b = await bench()
  b.sessions.answer = () => completed
  await b.put('demo', hourly({ agent_name: 'worker' }))
  for (let n = 0; n < 3; n++) {
    await b.clock.advance(10 * MINUTE)
    await b.request('POST', '/api/automation/jobs/demo/trigger')
    await b.until(async () => (await b.runs()).filter(run => run.ended_at).length > n, 'it ended')
  }
  const common = { agent_name: 'report', scope: 'workspace', workspace_id: b.workspace, prompt: 'Look.' }
  const create = async (body: Record<string, unknown>) =>
    (await b.request('POST', '/api/automation/triggers', { ...common, ...body })).body.trigger.id
  const filter = { 'data.agent_name': 'worker' }
  const twice = await create({ name: 'twice', event: 'session.stopped', filter, fire_limit: { max: 2, window: '1h' } })
  const ends = await create({ name: 'ends', event: 'automation.run.completed' })
  await create({ name: 'nobody', event: 'session.created', filter: { 'data.agent_name': 'nobody' } })
  const { triggers, jobs } = await simulated(b, 'days=2&part=triggers')
  assert.is(jobs, undefined)
  const of = (id: string) => triggers.occasions.filter((one: Reply) => one.trigger_id === id)
  assert.equal(
    of(twice).map((one: Reply) => [one.outcome, one.reason, one.event]),
    [
      ['fires', undefined, 'session.stopped'],
      ['fires', undefined, 'session.stopped'],
      ['skips', 'fire_limit', 'session.stopped'],
    ],
  )
  assert.is(of(ends).length, 3)
  await create({ name: 'pushed', event: 'webhook', endpoint_slug: 'pushed', webhook_secret_ref: 'env:NOT_THERE' })
  const pushed = (await simulated(b, 'days=2&only=pushed')).triggers
  assert.equal(
    pushed.silent.map((one: Reply) => [one.name, one.why]),
    [['pushed', 'webhook']],
  )
  assert.equal([triggers.events, triggers.silent.map((one: Reply) => one.name)], [9, ['nobody']])
  assert.equal((await b.request('GET', `/api/automation/triggers/${twice}/runs`)).body.runs, [])
  await b.end()
})

test('a schedule is shown in words with its next occurrences, which are those of a job that has it', async () => {
  const b = await bench()
  const preview = async (schedule: Record<string, string>, count = 3) => {
    const query = new URLSearchParams({ ...schedule, count: String(count) })
    return b.request('GET', `/api/automation/occurrences?${query}`)
  }
  const cron = { mode: 'cron', expr: '0 */6 * * *', timezone: 'Asia/Tokyo' }
  const { status, body } = await preview(cron)
  assert.equal([status, body.timezone], [200, 'Asia/Tokyo'])
  assert.match(body.text, /Every 6 hours.*\(Asia\/Tokyo\)|every 6 hours.*\(Asia\/Tokyo\)/)
  await b.put('six', hourly({ name: 'six', schedule: cron }))
  const { jobs } = await simulated(b, 'days=1&only=six')
  assert.equal(
    body.occurrences,
    jobs.occasions.slice(0, 3).map((one: Reply) => one.at),
  )
  const every = await preview({ mode: 'every', interval: '90m' })
  assert.equal(every.body.occurrences, [at(90 * MINUTE), at(180 * MINUTE), at(270 * MINUTE)])
  const once = await preview({ mode: 'at', time: at(DAY) })
  assert.equal(once.body.occurrences, [at(DAY)])
  for (const [schedule, why] of [
    [{ mode: 'cron', expr: '0 9 * *' }, /five fields/],
    [{ mode: 'every', interval: 'soon' }, /duration/],
    [{ mode: 'cron', expr: '0 0 31 2 *' }, /never matches/],
  ] as const) {
    const refused = await preview(schedule)
    assert.equal([refused.status, refused.body.code], [400, 'job_invalid'])
    assert.match(refused.body.error, why)
  }
  await b.end()
})

test.run()
