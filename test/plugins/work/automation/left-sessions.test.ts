import { rm } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { openStore } from '../../../../kernel/store/index.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { type Bench, bench, hourly, START } from './bench.js'
import { completed } from './fake-sessions.js'

const HOUR = 3_600_000
const DAY = 24 * HOUR

async function endAll(...benches: Bench[]): Promise<void> {
  for (const b of benches) {
    await b.end()
    await rm(b.home, { recursive: true, force: true })
  }
}

const left = async (home: string) => {
  const store = await openStore({ path: path.join(home, 'svc.db'), now: () => START })
  const rows = store.db.rows('SELECT session_id FROM automation_left_session ORDER BY session_id')
  await store.close()
  return rows.map(([id]) => id)
}

/** A home whose job has 1,003 runs, a day apart, and a daemon that has just started on it. */
async function grown(retire: (id: string) => 'removed' | 'kept' | 'referred'): Promise<Bench> {
  const b = await bench()
  await b.put('demo', { ...hourly(), enabled: false })
  const home = await b.snapshot()
  await endAll(b)
  const store = await openStore({ path: path.join(home, 'svc.db'), now: () => START })
  await store.db.tx(t => {
    for (let n = 0; n < 1003; n++) {
      const at = START + n * DAY
      t.run(
        `INSERT INTO automation_run (id, job_id, status, attempt, started_at, ended_at, session_id, event)
         VALUES (?, 'demo', ?, 1, ?, ?, ?, 'evt_1')`,
        [`run_${n}`, n === 1 ? 'failed' : 'completed', at, at + 1000, n === 0 ? null : `ses_${n}`],
      )
    }
  })
  await store.close()
  const clock = new VirtualClock(START + 1003 * DAY)
  const next = await bench({ home, clock })
  next.sessions.answer = () => completed
  next.sessions.retire = retire
  return next
}

const run = async (b: Bench) => {
  const ended = async () => (await b.runs('demo')).filter(({ status }) => status === 'completed').length
  const before = b.sessions.created.length
  assert.is((await b.request('POST', '/api/automation/jobs/demo/trigger')).status, 200)
  await b.until(async () => b.sessions.created.length > before && (await ended()) > 0, 'it runs')
}

test('the session of a run is deleted with the run, and sessions of the newest runs stay', async () => {
  const b = await grown(() => 'removed')
  await run(b)
  await b.until(async () => b.sessions.retired.length === 3, 'three sessions are removed')
  assert.equal(
    b.sessions.retired.map(({ id, endedAt }) => [id, endedAt]),
    [1, 2, 3].map(n => [`ses_${n}`, START + n * DAY + 1000]),
  )
  for (const n of [0, 3]) assert.is((await b.request('GET', `/api/automation/runs/run_${n}`)).status, 404)
  assert.is((await b.request('GET', '/api/automation/runs/run_4')).status, 200)
  await b.until(async () => (await left(await b.snapshot())).length === 0, 'nothing is left to do')
  await endAll(b)
})

test('runs of a deleted job are deleted after 7 days with their sessions; those of other jobs stay', async () => {
  const b = await grown(() => 'removed')
  await b.put('other', { ...hourly({ name: 'other' }), enabled: false })
  assert.is((await b.request('DELETE', '/api/automation/jobs/demo')).status, 204)
  const count = async (home: string) => {
    const store = await openStore({ path: path.join(home, 'svc.db'), now: () => START })
    const rows = store.db.rows('SELECT job_id, count(*) FROM automation_run GROUP BY job_id')
    await store.close()
    return Object.fromEntries(rows)
  }
  assert.equal(await count(await b.snapshot()), { demo: 1003 })
  await b.after(2 * DAY, async () => b.sessions.retired.length >= 990, 'sessions of old runs are removed')
  const { demo } = await count(await b.snapshot())
  assert.ok(Number(demo) > 0 && Number(demo) < 10, `runs of the last days stay: ${demo}`)
  await b.after(8 * DAY, async () => b.sessions.retired.length === 1002, 'the others are removed as well')
  assert.equal(await count(await b.snapshot()), {})
  await endAll(b)
})

test('a referenced session is retried, also by the next daemon; a kept one is not', async () => {
  const b = await grown(id => (id === 'ses_1' ? 'kept' : 'referred'))
  await run(b)
  await b.until(async () => b.sessions.retired.length === 3, 'three are tried')
  const home = await b.snapshot()
  assert.equal(await left(await b.snapshot()), ['ses_2', 'ses_3'])
  const clock = new VirtualClock(b.clock.now() + DAY / 2)
  const next = await bench({ home, clock })
  assert.equal(next.sessions.retired, [])
  await next.after(DAY / 2, async () => next.sessions.retired.length === 2, 'they are tried a day later')
  assert.equal(next.sessions.retired.map(({ id }) => id).toSorted(), ['ses_2', 'ses_3'])
  await endAll(b, next)
})

test.run()
