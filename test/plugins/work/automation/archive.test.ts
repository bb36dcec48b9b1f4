import { readdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { openStore } from '../../../../kernel/store/index.js'
import archives from '../../../../plugins/desk/archives/index.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import type { Reply } from '../../../harness/kernel.js'
import { type Bench, bench, hourly, START } from './bench.js'
import { completed } from './fake-sessions.js'

const HOUR = 3_600_000
const DAY = 24 * HOUR
/** Runs an hour apart that began less than 7 days ago, a few minutes after the last one. */
const RECENT = 7 * 24 - 1

interface Grown {
  /** Runs of the job `demo`, an hour apart, the last one an hour before the daemon starts. */
  readonly runs: number
  readonly status?: (n: number) => string
  readonly spec?: Readonly<Record<string, unknown>>
  readonly plugins?: Parameters<typeof bench>[0] extends infer O
    ? NonNullable<O> extends { plugins?: infer P }
      ? P
      : never
    : never
  readonly config?: unknown
}

/** A run id of the length of those that belong to an occurrence, or of the shorter ones of runs started by hand. */
const idOf = (n: number) => `run_${n.toString(16).padStart(n % 2 === 0 ? 24 : 16, '0')}`

async function seeded(home: string, { runs, status }: Grown): Promise<void> {
  const store = await openStore({ path: path.join(home, 'svc.db'), now: () => START })
  await store.db.tx(t => {
    for (let n = 0; n < runs; n++)
      t.run(
        `INSERT INTO automation_run (id, job_id, status, attempt, scheduled_at, started_at, ended_at, session_id, event)
         VALUES (?, 'demo', ?, 1, ?, ?, ?, ?, 'evt_1')`,
        [idOf(n), status?.(n) ?? 'completed', START + n * HOUR, START + n * HOUR, START + n * HOUR + 1000, `ses_${n}`],
      )
  })
  await store.close()
}

/** A daemon that has just started on a home with old runs of a job that is disabled. */
async function grown(options: Grown): Promise<Bench> {
  const b = await bench()
  await b.put('demo', { ...hourly(options.spec), enabled: false })
  const home = await b.snapshot()
  await b.end()
  await seeded(home, options)
  const clock = new VirtualClock(START + options.runs * HOUR)
  const next = await bench({ home, clock, config: options.config, plugins: options.plugins ?? [archives] })
  next.sessions.answer = () => completed
  next.sessions.retire = () => 'removed'
  return next
}

/** Ids of runs that a list shows. */
async function listed(b: Bench, query: string, of = '/api/automation/runs'): Promise<string[]> {
  const { status, body } = await b.request('GET', `${of}?${query}`)
  assert.is(status, 200, JSON.stringify(body))
  return body.runs.map(({ id }: Reply) => id)
}

/** Runs that are in the catalog of a home as it lies on the disk; undefined where the copy fell into a write. */
async function inCatalog(b: Bench): Promise<number | undefined> {
  const home = await b.snapshot()
  try {
    const store = await openStore({ path: path.join(home, 'svc.db'), now: () => START })
    const [count] = store.db.row('SELECT count(*) FROM automation_run') ?? []
    await store.close()
    return Number(count)
  } catch (error) {
    if ((error as { code?: string }).code === 'store_damaged') return undefined
    throw error
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

/** Lets the daemon look for old runs until so many are left in the catalog. */
async function swept(b: Bench, left: number): Promise<void> {
  let count: number | undefined
  for (let n = 0; n < 1000 && count !== left; n++) {
    await b.clock.advance(n < 5 ? 60_000 : 20)
    await new Promise(resolve => setTimeout(resolve, 5))
    if (n % 20 === 19) count = await inCatalog(b)
  }
  assert.is(count, left)
}

const all = (runs: number) => Array.from({ length: runs }, (_, n) => idOf(runs - 1 - n))

test('an old run is shown and listed unchanged from the archive', async () => {
  const runs = 400
  const b = await grown({ runs, status: n => (n % 3 === 0 ? 'failed' : 'completed') })
  const before = {
    run: (await b.request('GET', `/api/automation/runs/${idOf(3)}`)).body,
    all: (await b.request('GET', '/api/automation/runs?limit=1000')).body,
    history: await listed(b, 'limit=1000', '/api/automation/jobs/demo/runs'),
  }
  // Those of the last 7 days stay.
  await swept(b, RECENT)
  assert.equal((await b.request('GET', `/api/automation/runs/${idOf(3)}`)).body, before.run)
  assert.equal((await b.request('GET', '/api/automation/runs?limit=1000')).body, before.all)
  assert.equal(before.history, all(runs))
  assert.equal(await listed(b, 'limit=1000', '/api/automation/jobs/demo/runs'), before.history)
  assert.equal(await listed(b, 'limit=200'), all(runs).slice(0, 200))
  assert.equal(
    await listed(b, 'limit=1000&status=failed'),
    all(runs).filter((_, at) => (runs - 1 - at) % 3 === 0),
  )
  const [from, to] = [new Date(START + 10 * HOUR).toISOString(), new Date(START + 12 * HOUR).toISOString()]
  assert.equal(await listed(b, `since=${from}&until=${to}`), [12, 11, 10].map(idOf))
  assert.equal(await listed(b, 'trigger_id=none'), [])
  assert.is((await b.request('GET', '/api/automation/runs/run_ffffffffffffffff')).status, 404)
  assert.is((await b.job('demo')).last_run.id, idOf(runs - 1))
  const home = await b.snapshot()
  await b.end()
  // The next daemon reads the same, and has nothing to move.
  const next = await bench({ home, clock: new VirtualClock(START + runs * HOUR), plugins: [archives] })
  assert.equal((await next.request('GET', `/api/automation/runs/${idOf(3)}`)).body, before.run)
  assert.equal(await listed(next, 'limit=1000'), before.history)
  await next.end()
})

test('the latest runs of a job and those that count toward its fire limit stay in the catalog', async () => {
  const rare = await grown({ runs: 40 })
  await rare.clock.advance(60 * DAY)
  await swept(rare, 40)
  await rare.end()
  const limited = await grown({ runs: 400, spec: { fire_limit: { max: 1000, window: '300h' } } })
  // 300 hours, of which a few minutes have passed.
  await swept(limited, 299)
  await limited.end()
  const off = await grown({ runs: 400, config: { automation: { archive_after_days: 0 } } })
  await swept(off, 400)
  await off.end()
})

test('the newest 1,000 runs of a job are kept, archived ones included; others are deleted with their sessions', async () => {
  const b = await grown({ runs: 1100 })
  await swept(b, RECENT)
  await b.until(async () => b.sessions.retired.length === 100, 'the sessions of 100 runs are removed')
  assert.equal(
    b.sessions.retired.map(({ id }) => id),
    Array.from({ length: 100 }, (_, n) => `ses_${n}`),
  )
  assert.equal(await listed(b, 'limit=1000'), all(1100).slice(0, 1000))
  assert.is((await b.request('GET', `/api/automation/runs/${idOf(99)}`)).status, 404)
  assert.is((await b.request('GET', `/api/automation/runs/${idOf(100)}`)).status, 200)
  await b.end()
})

test('archived runs of a deleted job are deleted with their sessions', async () => {
  const b = await grown({ runs: 300 })
  await swept(b, RECENT)
  assert.is((await b.request('DELETE', '/api/automation/jobs/demo')).status, 204)
  assert.is((await listed(b, 'limit=1000')).length, 300)
  await b.clock.advance(HOUR)
  for (let n = 0; b.sessions.retired.length < 300 - RECENT; n++) {
    assert.ok(n < 2000, `${b.sessions.retired.length} sessions are removed`)
    await b.clock.advance(20)
    await new Promise(resolve => setTimeout(resolve, 2))
  }
  // Those of the last 7 days stay; an hour or two of them have passed by now.
  const rest = await listed(b, 'limit=1000')
  assert.ok(rest.length >= RECENT - 2, `${rest.length} are left`)
  assert.equal(rest, all(300).slice(0, rest.length))
  await b.end()
})

test('an occurrence whose run is in the archive does not run again', async () => {
  const b = await grown({ runs: 300, spec: { schedule: { mode: 'every', interval: '1h' } } })
  const record = (await b.request('GET', '/api/resources/automation.job/demo')).body.record
  await swept(b, RECENT)
  const home = await b.snapshot()
  await b.end()
  // The clock was set back by two weeks: what was claimed then comes again.
  const store = await openStore({ path: path.join(home, 'svc.db'), now: () => START })
  const { createHash } = await import('node:crypto')
  const ids = Array.from({ length: 100 }, (_, n) => {
    const second = `${new Date(START + n * HOUR).toISOString().slice(0, 19)}Z`
    return `run_${createHash('sha256').update(`demo|${second}`).digest('hex').slice(0, 24)}`
  })
  await store.db.tx(t => {
    for (const id of ids) t.run('INSERT INTO automation_archived (id, segment) VALUES (?, 1)', [id])
  })
  await store.close()
  const next = await bench({ home, clock: new VirtualClock(START - HOUR), plugins: [archives] })
  next.sessions.answer = () => completed
  const spec = { ...record.spec, enabled: true, schedule: { mode: 'cron', expr: '0 * * * *', timezone: 'UTC' } }
  assert.is((await next.put('demo', spec, record.version)).status, 200)
  const created = next.sessions.created.length
  for (let n = 0; n < 5; n++) await next.clock.advance(HOUR)
  await next.until(
    async () => (await next.job('demo')).next_run > new Date(START + 2 * HOUR).toISOString(),
    'it went on',
  )
  assert.is(next.sessions.created.length, created)
  await next.end()
})

test('an interrupted move is repeated, and no run appears twice', async () => {
  const b = await grown({ runs: 400 })
  const before = await b.snapshot()
  await swept(b, RECENT)
  const after = await b.snapshot()
  await b.end()
  // The archive has the runs already, the catalog has not noted it.
  await rm(path.join(after, 'svc.db'))
  await rm(path.join(after, 'svc.db-wal'), { force: true })
  await rm(path.join(after, 'svc.db-mark'), { force: true })
  const { cp } = await import('node:fs/promises')
  for (const name of await readdir(before))
    if (name.startsWith('svc.db')) await cp(path.join(before, name), path.join(after, name))
  const next = await bench({ home: after, clock: new VirtualClock(START + 400 * HOUR), plugins: [archives] })
  assert.equal(await listed(next, 'limit=1000'), all(400))
  await swept(next, RECENT)
  assert.equal(await listed(next, 'limit=1000'), all(400))
  await next.end()
  await rm(before, { recursive: true, force: true })
})

test('a damaged segment affects only its runs, and doctor names it', async () => {
  const b = await grown({ runs: 400 })
  await swept(b, RECENT)
  const home = await b.snapshot()
  await b.end()
  await writeFile(path.join(home, 'archives/automation/1.db'), 'no database')
  const next = await bench({ home, clock: new VirtualClock(START + 400 * HOUR), plugins: [archives] })
  const unreadable = async () => {
    const { items } = (await next.request('GET', '/api/doctor')).body
    return items.filter(({ code }: Reply) => code === 'run_archive_unreadable').length
  }
  // Runs that go on are never there, and nobody looks.
  assert.equal(await listed(next, 'status=running'), [])
  assert.is(await unreadable(), 0)
  assert.equal(await listed(next, 'limit=1000'), all(400).slice(0, RECENT))
  assert.is(await unreadable(), 1)
  const { status, body } = await next.request('GET', `/api/automation/runs/${idOf(0)}`)
  assert.equal([status, body.code], [503, 'archive_damaged'])
  const copy = await next.snapshot()
  await next.end()
  const off = await bench({ home: copy, clock: new VirtualClock(START + 400 * HOUR) })
  const refused = await off.request('GET', `/api/automation/runs/${idOf(0)}`)
  assert.equal([refused.status, refused.body.code], [503, 'run_archive_off'])
  await off.end()
})

test.run()
