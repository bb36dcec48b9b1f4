// proof, timeout: 300s: a simulation, and a daemon that then lives through the same days

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { seededIds } from '../../../../testing/seeded-ids.js'
import type { Reply } from '../../../harness/kernel.js'
import { firstSeed } from '../../../proofs/library/seed.js'
import { hourly } from './bench.js'
import { lineOf, Twin } from './twin.js'

const [JOBS, DAYS] = [Number(process.env.TWIN_JOBS ?? 40), Number(process.env.TWIN_DAYS ?? 30)]
const [SECOND, DAY] = [1000, 86_400_000]
/** The clocks of Paris go forward within the days that follow. */
const START = Date.UTC(2030, 2, 10)
/** No other time of a job is a multiple of it, so that the end of a run never meets an occurrence. */
const RUN_SECONDS = 97
const seed = firstSeed()

/** Every policy, mode and limit; the rare ones are rare. */
function randomJob(n: number, below: (n: number) => number): Record<string, unknown> {
  const one = <T>(...from: readonly T[]): T => from[below(from.length)] as T
  const policy = {
    catch_up_policy: one('skip_missed', 'coalesce', 'replay', 'run_once_on_catchup'),
    misfire_grace_seconds: one(0, 60, 7200),
  }
  const schedule = one<() => Record<string, unknown>>(
    () => ({ mode: 'every', interval: `${600 + 60 * below(10_000)}m`, ...policy }),
    () => ({ mode: 'cron', expr: `${one(0, 15, 30)} ${below(24)} * * *`, ...policy }),
    () => ({
      mode: 'cron',
      expr: `${below(60)} ${one('1-3', '*/12', '2', '0')} * * ${one('*', '0', '1-5')}`,
      ...policy,
    }),
    () => ({ mode: 'at', time: new Date(START + below(40 * 24 * 60) * 60_000 + 60_000).toISOString() }),
  )()
  const name = `${below(5) === 0 ? 'fails' : 'job'} ${n}`
  return hourly({
    name,
    schedule,
    enabled: below(20) !== 0,
    ...(below(4) === 0 ? { fire_limit: { max: 1 + below(2), window: `${1 + below(60)}h` } } : {}),
    ...(below(2) === 0 ? { retry: { strategy: 'backoff', max_retries: 1 + below(3), base_delay: '7s' } } : {}),
  })
}

test(`a daemon on a virtual clock does exactly what the simulation of ${JOBS} jobs predicted (SVC_SEED=${seed})`, async () => {
  const { random } = seededIds(seed)
  const below = (n: number) => Math.floor(random() * n)
  const config = { automation: { max_concurrent_jobs: 4, timezone: 'Europe/Paris' } }
  const fails = (name: string) => name.startsWith('fails')
  const twin = await Twin.open({ start: START, config, runMs: RUN_SECONDS * SECOND, fails })
  const ids = Array.from({ length: JOBS }, (_, n) => `job${String(n).padStart(5, '0')}`)
  const specs = ids.map((_, n) => randomJob(n, below))
  for (const [n, id] of ids.entries()) {
    const reply = await twin.b.put(id, specs[n] as Record<string, unknown>)
    assert.is(reply.status, 201, JSON.stringify(reply.body))
  }
  const away = [8, 19].map(day => {
    const from = START + day * DAY + below(DAY / SECOND) * SECOND + 500
    return { from, to: from + below(4 * (DAY / SECOND)) * SECOND + 60_000 }
  })
  const end = START + DAYS * DAY
  const spans = away.filter(({ to }) => to < end)
  const query = new URLSearchParams({
    days: String(DAYS),
    part: 'jobs',
    run_seconds: String(RUN_SECONDS),
    failing: specs
      .map(({ name }) => String(name))
      .filter(fails)
      .join(','),
    offline: spans.map(({ from, to }) => `${new Date(from).toISOString()}/${new Date(to).toISOString()}`).join(','),
    limit: '20000',
  })
  const began = performance.now()
  const reply = await twin.b.request('GET', `/api/automation/simulation?${query}`)
  const elapsed = performance.now() - began
  assert.is(reply.status, 200, JSON.stringify(reply.body))
  const { jobs } = reply.body.simulation
  assert.is(jobs.unlisted, 0)
  const predicted = jobs.occasions.map((one: Reply) => lineOf(one)).sort()

  for (const { from, to } of spans) {
    await twin.passTo(from)
    await twin.away(to)
  }
  await twin.passTo(end)
  const lived = await twin.lived(ids)
  const different = [
    ...predicted.filter((line: string) => !lived.includes(line)).map((line: string) => `said  ${line}`),
    ...lived.filter(line => !predicted.includes(line)).map(line => `lived ${line}`),
  ]
  console.log(`${predicted.length} occasions in ${Math.round(elapsed)} ms: ${JSON.stringify(jobs.skipped)}`)
  assert.equal(different.slice(0, Number(process.env.TWIN_SHOWN ?? 20)), [])
  assert.ok(predicted.length > JOBS, `${predicted.length} occasions`)
  await twin.b.end()
})

test.run()
