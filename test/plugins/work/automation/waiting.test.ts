import { rm } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import type { Reply } from '../../../harness/kernel.js'
import { type Bench, bench, hourly, START } from './bench.js'
import { completed } from './fake-sessions.js'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const config = (more: object = {}) => ({ automation: { max_concurrent_jobs: 1, ...more } })

const test = suite<{ b: Bench }>('queued occurrences')
test.before.each(async context => {
  context.b = await bench({ config: config() })
})
test.after.each(({ b }) => b.end())

/** Jobs that are due at the same time, in this order of their ids. */
const put = async (b: Bench, names: readonly string[], more: object = {}) => {
  for (const name of names) await b.put(name, hourly({ name, ...more }))
}
const states = async (b: Bench): Promise<string[]> =>
  (await b.runs()).map(({ job_id: job, status, metadata }: Reply) =>
    [job, status, ...(metadata?.reason ? [metadata.reason] : [])].join(' '),
  )
const untilStates = (b: Bench, ...wanted: string[]) =>
  b
    .until(async () => (await states(b)).join() === wanted.join(), wanted.join())
    .catch(async () => {
      assert.equal(await states(b), wanted)
    })
const finish = (b: Bench) => b.sessions.finish(b.sessions.prompts.at(-1)?.id ?? '', completed)

test('occurrences wait for a slot in the order of their due times, and all run', async ({ b }) => {
  await put(b, ['a', 'b', 'c'])
  await b.clock.advance(HOUR)
  await untilStates(b, 'a running', 'b scheduled', 'c scheduled')
  const waits = (await b.runs())[1]?.metadata.waits_until
  assert.is(Date.parse(waits) - b.clock.now(), 10 * MINUTE)
  finish(b)
  await untilStates(b, 'a completed', 'b running', 'c scheduled')
  await b.clock.advance(MINUTE)
  finish(b)
  await untilStates(b, 'a completed', 'b completed', 'c running')
})

test('an occurrence without a free slot in time is canceled', async ({ b }) => {
  await put(b, ['a', 'b'])
  await b.clock.advance(HOUR)
  await untilStates(b, 'a running', 'b scheduled')
  await b.clock.advance(10 * MINUTE - 1)
  assert.equal(await states(b), ['a running', 'b scheduled'])
  await b.clock.advance(1)
  await untilStates(b, 'a running', 'b canceled concurrency_limit')
})

test('a manual run does not wait, and its job may not overlap with a waiting occurrence', async ({ b }) => {
  await put(b, ['a', 'b'])
  await b.clock.advance(HOUR)
  await untilStates(b, 'a running', 'b scheduled')
  const reply = await b.request('POST', '/api/automation/jobs/b/trigger')
  assert.equal([reply.status, reply.body.code], [409, 'concurrency_limit'])
})

test('the fire limit is checked when a slot is free', async ({ b }) => {
  await b.put('a', hourly({ name: 'a' }))
  await b.put('b', hourly({ name: 'b', fire_limit: { max: 1, window: '2h' } }))
  await b.clock.advance(HOUR)
  await untilStates(b, 'a running', 'b scheduled')
  finish(b)
  await b.until(async () => b.sessions.prompts.length === 2, 'b has begun')
  finish(b)
  await untilStates(b, 'a completed', 'b completed')
  await b.clock.advance(HOUR)
  await b.until(async () => (await states(b)).length === 4, 'both are due again')
  await untilStates(b, 'a completed', 'b completed', 'a running', 'b scheduled')
  finish(b)
  await untilStates(b, 'a completed', 'b completed', 'a completed', 'b canceled fire_limit')
  assert.is((await b.job('b')).next_run, new Date(START + 3 * HOUR).toISOString())
})

test('an occurrence of a job that was deleted or disabled meanwhile is canceled', async ({ b }) => {
  await put(b, ['a', 'b', 'c'])
  await b.clock.advance(HOUR)
  await untilStates(b, 'a running', 'b scheduled', 'c scheduled')
  await b.request('PATCH', '/api/automation/jobs/c', { enabled: false })
  assert.is((await b.request('DELETE', '/api/resources/automation.job/b', { expected_version: 1 })).status, 204)
  finish(b)
  await untilStates(b, 'a completed', 'b canceled job_not_found', 'c canceled job_disabled')
})

for (const how of ['stopped', 'killed'] as const)
  test(`occurrences waiting when the daemon is ${how} wait on for the remaining time`, async ({ b }) => {
    await put(b, ['a', 'b', 'c'])
    await b.clock.advance(HOUR)
    await untilStates(b, 'a running', 'b scheduled', 'c scheduled')
    const home = how === 'killed' ? await b.snapshot() : b.home
    await b.kernel.close()
    const next = await bench({ home, config: config(), clock: new VirtualClock(b.clock.now() + 4 * MINUTE) })
    try {
      const first = how === 'killed' ? 'a failed' : 'a canceled'
      await untilStates(next, first, 'b running', 'c scheduled')
      assert.is(Date.parse((await next.runs())[2]?.metadata.waits_until) - next.clock.now(), 6 * MINUTE)
      await next.clock.advance(6 * MINUTE)
      await untilStates(next, first, 'b running', 'c canceled concurrency_limit')
    } finally {
      await next.end()
      await rm(home, { recursive: true, force: true })
    }
  })

test('missed occurrences run one after the other: each waits from its turn', async ({ b }) => {
  const schedule = { mode: 'every', interval: '1h', catch_up_policy: 'replay' }
  await put(b, ['a', 'b'], { schedule })
  await b.kernel.close()
  const next = await bench({ home: b.home, config: config(), clock: new VirtualClock(START + 2 * HOUR + 1) })
  try {
    await untilStates(next, 'a running', 'b scheduled')
    for (const _ of [1, 2, 3]) {
      const before = next.sessions.prompts.length
      await next.clock.advance(9 * MINUTE)
      finish(next)
      await next.until(async () => next.sessions.prompts.length > before, 'the next run has begun')
    }
    finish(next)
    await next.until(async () => (await next.runs()).every((run: Reply) => run.ended_at), 'all runs are over')
    const runs = (await next.runs()).filter((run: Reply) => Date.parse(run.scheduled_at) <= START + 2 * HOUR)
    assert.equal(
      runs.map((run: Reply) => [run.job_id, run.status, (Date.parse(run.scheduled_at) - START) / HOUR]).sort(),
      [
        ['a', 'completed', 1],
        ['a', 'completed', 2],
        ['b', 'completed', 1],
        ['b', 'completed', 2],
      ],
    )
  } finally {
    await next.end()
  }
})

test('with a wait of 0s an occurrence without a slot is canceled at once', async ({ b }) => {
  await b.kernel.close()
  const other = await bench({ config: config({ queue_wait: '0s' }) })
  try {
    await put(other, ['a', 'b'])
    await other.clock.advance(HOUR)
    await untilStates(other, 'a running', 'b canceled concurrency_limit')
    assert.is((await other.job('b')).next_run, new Date(START + 2 * HOUR).toISOString())
  } finally {
    await other.end()
  }
})

test.run()
