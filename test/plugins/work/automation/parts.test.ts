import { createRequire } from 'node:module'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, type PluginKernel, turn } from '../../../../kernel/plugin.js'
import { Events } from '../../../../plugins/platform/events/api.js'
import type { RunStatus } from '../../../../plugins/work/automation/api.js'
import { RunCreated, RunEnded, RunStarted } from '../../../../plugins/work/automation/api.js'
import { lifecycleCommand } from '../../../../plugins/work/automation/lifecycle-command.js'
import { Pace } from '../../../../plugins/work/automation/pace.js'
import { isFinal, isOf, RUN_TRANSITIONS } from '../../../../plugins/work/automation/runs/run-row.js'
import {
  deliveryColumns,
  fewerIndexes,
  runTable,
  slotIndex,
  taskColumns,
  triggerColumns,
  waitColumn,
  waitIndex,
} from '../../../../plugins/work/automation/runs/run-tables.js'
import { OPEN_COUNT, RunStore } from '../../../../plugins/work/automation/runs/runs.js'
import {
  decide,
  Occurrences,
  occurrenceIds,
  scheduleHash,
  scheduleProblem,
} from '../../../../plugins/work/automation/schedule.js'
import { label } from '../../../fixtures/cases.js'
import { boot } from '../../../harness/kernel.js'

const HOUR = 3_600_000
const utc = (text: string) => Date.parse(text)

test('runs are counted and listed by indexes, and runs of triggers are not in those of jobs', async () => {
  interface PlainDatabase {
    run(sql: string): void
    exec(sql: string): readonly { readonly values: readonly (readonly unknown[])[] }[]
  }
  const sqlite: { readonly Database: new () => PlainDatabase } = await createRequire(import.meta.url)('sql.js')()
  const db = new sqlite.Database()
  const tables = [
    runTable,
    deliveryColumns,
    triggerColumns,
    taskColumns,
    waitColumn,
    slotIndex,
    fewerIndexes,
    waitIndex,
  ]
  for (const sql of tables) db.run(sql)
  const planOf = (sql: string) =>
    (db.exec(`EXPLAIN QUERY PLAN ${sql}`)[0]?.values ?? []).map(row => String(row[3])).join('; ')
  const where = (condition: string) => planOf(`SELECT * FROM automation_run WHERE ${condition}`)
  assert.is(planOf(OPEN_COUNT), 'SCAN automation_run USING COVERING INDEX automation_run_taken')
  const waits = 'wait_until IS NOT NULL'
  const first = where(`${waits} ORDER BY scheduled_at, seq LIMIT +?`)
  assert.is(first, 'SCAN automation_run USING INDEX automation_run_waiting')
  for (const late of [`${waits} AND wait_until <= ? ORDER BY wait_until, seq LIMIT +?`, `${waits} AND wait_until > ?`])
    assert.match(
      where(late),
      /^SEARCH automation_run USING INDEX automation_run_wait_end \(wait_until>\?( AND wait_until<\?)?\)$/,
    )
  const ends = planOf(`SELECT min(wait_until) FROM automation_run WHERE ${waits}`)
  assert.is(ends, 'SEARCH automation_run USING COVERING INDEX automation_run_wait_end (wait_until>?)')
  const open = "job_id = ? AND status IN ('scheduled', 'running')"
  assert.is(where(open), 'SEARCH automation_run USING INDEX automation_run_taken (job_id=?)')
  for (const [column, name] of [
    ['job_id', 'of_job'],
    ['trigger_id', 'trigger'],
  ] as const) {
    const list = where(`${isOf(column)} AND seq < ? ORDER BY seq DESC LIMIT +?`)
    assert.is(list, `SEARCH automation_run USING INDEX automation_run_${name} (${column}=? AND seq<?)`)
    const since = where(`${isOf(column)} AND started_at > ? AND started_at <= ?`)
    assert.match(since, `USING INDEX automation_run_${name}_time (${column}=? AND started_at>? AND started_at<?)`)
  }
})

test('cron follows the wall clock of its time zone over both DST changes', () => {
  const paris = new Occurrences({ mode: 'cron', expr: '30 2 * * *' }, 'Europe/Paris')
  const days = (from: string, count: number) => {
    const seen: string[] = []
    for (let at = utc(from); seen.length < count; ) {
      at = paris.after(0, at) ?? Number.NaN
      seen.push(new Date(at).toISOString())
    }
    return seen
  }
  // 02:30 does not exist on the 29th of March and exists twice on the 25th of October: once each day all the same.
  assert.equal(days('2026-03-28T12:00:00Z', 3), [
    '2026-03-29T01:00:00.000Z',
    '2026-03-30T00:30:00.000Z',
    '2026-03-31T00:30:00.000Z',
  ])
  assert.equal(days('2026-10-24T12:00:00Z', 3), [
    '2026-10-25T00:30:00.000Z',
    '2026-10-26T01:30:00.000Z',
    '2026-10-27T01:30:00.000Z',
  ])
})

test('the zone of a schedule comes before that of the settings, and is part of its hash', () => {
  const noon = { mode: 'cron', expr: '0 12 * * *', timezone: 'Asia/Tokyo' } as const
  const first = new Occurrences(noon, 'Europe/Paris').first(utc('2026-01-01T00:00:00Z')) ?? Number.NaN
  assert.is(new Date(first).toISOString(), '2026-01-01T03:00:00.000Z')
  assert.is(scheduleHash(noon, 'Europe/Paris'), scheduleHash(noon, 'UTC'))
  assert.is.not(scheduleHash(noon, 'UTC'), scheduleHash({ ...noon, timezone: 'UTC' }, 'UTC'))
  assert.is(scheduleProblem(noon), undefined)
  assert.match(scheduleProblem({ ...noon, timezone: 'Mars/Olympus' }) ?? '', 'schedule.timezone: must be an IANA name')
  assert.match(scheduleProblem({ mode: 'every', interval: '1h', timezone: 'UTC' }) ?? '', 'not allowed with mode every')
})

test('where a day field begins with *, both day fields must match, otherwise either', () => {
  const days = (expr: string) => {
    const schedule = new Occurrences({ mode: 'cron', expr }, 'UTC')
    const seen: string[] = []
    for (let at = utc('2026-11-01T00:00:00Z'); seen.length < 4; ) {
      at = schedule.after(at, at) ?? Number.NaN
      seen.push(new Date(at).toISOString().slice(5, 10))
    }
    return seen
  }
  assert.equal(days('0 9 */2 * 1'), ['11-09', '11-23', '12-07', '12-21'])
  assert.equal(days('0 9 1 * 1'), ['11-01', '11-02', '11-09', '11-16'])
  // The first of a month that is a Sunday.
  assert.equal(days('0 9 1 * */7'), ['11-01', '08-01', '10-01', '04-01'])
})

/** The minutes of a zone's wall clock, by a road that does not go through the library under test. */
function wallClock(zone: string) {
  const format = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    hourCycle: 'h23',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
  })
  return (at: number) => {
    const part = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]))
    return { day: part.day as number, hour: part.hour as number, minute: part.minute as number }
  }
}

// The days around the changes of 2026; Lord Howe moves by half an hour, Santiago at midnight.
const CHANGES = [
  ['Europe/Paris', '2026-03-28T00:00:00Z'],
  ['Europe/Paris', '2026-10-24T00:00:00Z'],
  ['America/New_York', '2026-03-07T12:00:00Z'],
  ['America/New_York', '2026-10-31T12:00:00Z'],
  ['Australia/Lord_Howe', '2026-10-03T00:00:00Z'],
  ['Australia/Lord_Howe', '2026-04-04T00:00:00Z'],
  ['America/Santiago', '2026-09-05T12:00:00Z'],
  ['America/Santiago', '2026-04-04T12:00:00Z'],
] as const
for (const [zone, from] of CHANGES) {
  test(`no occurrence is lost or duplicated when ${zone} changes its clocks after ${from}`, () => {
    const [begin, end] = [utc(from), utc(from) + 60 * HOUR]
    const wall = wallClock(zone)
    for (const [expr, matches] of [
      ['*/10 * * * *', ({ minute }: { minute: number }) => minute % 10 === 0],
      ['20 * * * *', ({ minute }: { minute: number }) => minute === 20],
    ] as const) {
      const expected: number[] = []
      for (let at = begin + 60_000; at <= end; at += 60_000) if (matches(wall(at))) expected.push(at)
      assert.equal(sequence(expr, zone, begin, end), expected, expr)
    }
    // A fixed time of day: once a day, at that time, or right after the gap that swallows it.
    for (const expr of ['30 2 * * *', '15 0 * * *', '45 1 * * *', '30 23 * * *']) {
      const [minute, hour] = expr.split(' ').map(Number)
      const seen = sequence(expr, zone, begin, end)
      const days = seen.map(at => wall(at).day)
      assert.equal(days.length, new Set(days).size, `${expr}: twice in a day`)
      for (let at = begin + 60_000; at <= end; at += 60_000) {
        const { hour: h, minute: m, day } = wall(at)
        if (h === hour && m === minute) assert.ok(days.includes(day), `${expr}: lost on day ${day}`)
      }
      for (const at of seen) {
        const { hour: h, minute: m } = wall(at)
        const before = wall(at - 60_000)
        const jumped = h * 60 + m - (before.hour * 60 + before.minute) > 1
        assert.ok((h === hour && m === minute) || jumped || (before.hour === 23 && h === 1), `${expr} at ${h}:${m}`)
      }
    }
  })
}

/** All instants in (from, to]; on the way, that looking back finds the same ones. */
function sequence(expr: string, zone: string, from: number, to: number): number[] {
  const cron = new Occurrences({ mode: 'cron', expr }, zone)
  const seen: number[] = []
  for (let at = cron.after(0, from); at !== undefined && at <= to; at = cron.after(0, at)) {
    assert.ok(at > (seen.at(-1) ?? from), `${expr} stands still at ${new Date(at).toISOString()}`)
    if (seen.length > 0)
      assert.is(cron.latest(from, at - 1), seen.at(-1), `${expr} before ${new Date(at).toISOString()}`)
    seen.push(at)
  }
  return seen
}

test('the latest occurrence up to now and the next one are on the same grid', () => {
  const every = new Occurrences({ mode: 'every', interval: '10m' }, 'UTC')
  assert.is(every.latest(1000, 1000 + 25 * 60_000), 1000 + 20 * 60_000)
  assert.is(every.after(1000, 1000 + 25 * 60_000), 1000 + 30 * 60_000)
  assert.is(every.after(1000, 1000 + 20 * 60_000), 1000 + 30 * 60_000)
  assert.is(every.after(1000, 1000), 1000 + 10 * 60_000)
  const cron = new Occurrences({ mode: 'cron', expr: '0 9 * * *' }, 'UTC')
  const due = utc('2030-01-01T09:00:00Z')
  for (const [now, latest] of [
    ['2030-01-01T09:00:00.000Z', '2030-01-01T09:00:00Z'],
    ['2030-01-04T08:59:59.999Z', '2030-01-03T09:00:00Z'],
    ['2030-01-04T09:00:00.000Z', '2030-01-04T09:00:00Z'],
    ['2030-01-04T09:00:00.500Z', '2030-01-04T09:00:00Z'],
  ] as const) {
    assert.is(cron.latest(due, utc(now)), utc(latest), now)
  }
})

test('lateness is a misfire only after a start later than the occurrence', () => {
  const schedule = { mode: 'every', interval: '1h' } as const
  assert.equal(decide(schedule, 'UTC', HOUR, HOUR + 5000, false), {
    at: HOUR,
    next: 2 * HOUR,
    misfire: false,
    backlog: false,
  })
  assert.equal(decide(schedule, 'UTC', HOUR, HOUR + 5000, true), {
    at: HOUR,
    next: 2 * HOUR,
    misfire: true,
    backlog: false,
    skip: 'misfire_grace_exceeded',
  })
  assert.is(decide(schedule, 'UTC', HOUR, HOUR + 900, true).skip, undefined)
  assert.is(decide({ ...schedule, misfire_grace_seconds: 5 }, 'UTC', HOUR, HOUR + 5000, true).skip, undefined)
  const once = { mode: 'at', time: '1970-01-01T01:00:00Z' } as const
  assert.equal(decide(once, 'UTC', HOUR, HOUR + 5000, false).next, undefined)
  assert.is(decide(once, 'UTC', HOUR, 9 * HOUR, true).skip, 'misfire_grace_exceeded')
})

test('ids are derived from job and second, the hash from everything that occurrences depend on', () => {
  const ids = occurrenceIds('job_1', utc('2030-01-01T09:00:00.250Z'))
  assert.equal(ids, occurrenceIds('job_1', utc('2030-01-01T09:00:00.750Z')))
  assert.is.not(ids.run, occurrenceIds('job_2', utc('2030-01-01T09:00:00Z')).run)
  // The beginning of the SHA-256 of "job_1|2030-01-01T09:00:00Z".
  assert.equal(ids, { fire: 'fire_011e202e477fd4aee151885c', run: 'run_011e202e477fd4aee151885c' })
  const cron = { mode: 'cron', expr: '0 9 * * *' } as const
  assert.is(scheduleHash(cron, 'UTC'), scheduleHash({ ...cron }, 'UTC'))
  const others = [
    { ...cron, expr: '1 9 * * *' },
    { ...cron, catch_up_policy: 'replay' as const },
    { ...cron, misfire_grace_seconds: 1 },
  ]
  assert.is(new Set([cron, ...others].map(schedule => scheduleHash(schedule, 'UTC'))).size, 4)
  assert.is.not(scheduleHash(cron, 'UTC'), scheduleHash(cron, 'Europe/Paris'))
})

for (const [text, kind] of Object.entries({
  'run svc daemon stop now': 'svc_daemon',
  'SVC  DAEMON restart': 'svc_daemon',
  'pkill -9 -f svc': 'process_signal',
  'kill -TERM $(pidof svc)': 'process_signal',
  'kill `cat ~/.svc/svc.pid`': 'process_signal',
  'first\nsystemctl --user restart svc.service': 'service_manager',
  'launchctl bootout gui/501/svc': 'service_manager',
}))
  test(`a prompt stops the daemon by ${kind}: ${label(text)}`, () => assert.is(lifecycleCommand(text), kind))

for (const text of [
  'Look at svc status.',
  'svc workspace list',
  'systemctl restart nginx',
  'kill the bug in svc',
  'killall nginx',
  'stop svc from failing',
])
  test(`a prompt does not stop the daemon: ${text}`, () => assert.is(lifecycleCommand(text), undefined))

test('a long prompt is searched in linear time', () => {
  // One that tried every way to read this would not be done within the time of a test.
  assert.is(lifecycleCommand(`${'kill '.repeat(50_000)} svcx ${'systemctl '.repeat(20_000)}`), undefined)
})

test('runs only make the transitions of their table', async () => {
  const made: RunStore[] = []
  const kernels: PluginKernel<{ events: typeof Events }>[] = []
  const plugin = definePlugin({
    name: 'automation',
    version: '1.0.0',
    requires: { events: Events },
    service: async () =>
      class {
        constructor(kernel: PluginKernel<{ events: typeof Events }>) {
          kernels.push(kernel)
          made.push(new RunStore(kernel as never))
        }
      },
  }).surface({
    tables: [
      { id: '002-run', sql: runTable },
      { id: '003-delivery', sql: deliveryColumns },
      { id: '006-triggers', sql: triggerColumns },
      { id: '009-tasks', sql: taskColumns },
      { id: '012-waiting', sql: waitColumn },
    ],
    events: [RunCreated, RunStarted, RunEnded],
  })
  const bench = await boot({ plugins: [plugin] })
  const [runs, kernel] = [made[0] as RunStore, kernels[0] as PluginKernel<{ events: typeof Events }>]
  const states = Object.keys(RUN_TRANSITIONS) as RunStatus[]
  /** The states on the way to one. */
  const way: Record<RunStatus, RunStatus[]> = {
    scheduled: [],
    running: ['running'],
    delegated: ['delegated'],
    completed: ['running', 'completed'],
    failed: ['failed'],
    canceled: ['canceled'],
  }
  let count = 0
  for (const from of states) {
    for (const to of states) {
      const id = `run_${count++}`
      const attempt = kernel.db.tx(t => {
        runs.insert(t, { id, jobId: 'j', status: 'scheduled', attempt: 1 })
        for (const step of way[from]) runs.move(t, id, step)
        return runs.move(t, id, to)
      })
      const allowed = (RUN_TRANSITIONS[from] as readonly RunStatus[]).includes(to)
      const moved = await attempt.then(
        row => row.status,
        error => String(error),
      )
      if (allowed) assert.is(moved, to)
      else assert.match(moved, `cannot become ${to}`)
      if (allowed) assert.is(runs.get(id)?.ended_at !== null, isFinal(to))
      else assert.is(runs.get(id), undefined)
    }
  }
  await bench.close()
})

test('steps pass in order, a limited number per turn, without delay below the limit', async () => {
  const pace = new Pace(3)
  const passed: number[] = []
  const step = async (n: number) => {
    await pace.pass()
    passed.push(n)
  }
  for (let round = 0; round < 2; round++) {
    passed.length = 0
    const steps = Array.from({ length: 10 }, (_, n) => step(n))
    const counts: number[] = []
    // Those that pass at once go on in the queue of promises, before any turn.
    for (let i = 0; i < 10; i++) await undefined
    assert.is(passed.length, 3)
    while (passed.length < 10) {
      const before = passed.length
      await turn()
      counts.push(passed.length - before)
    }
    await Promise.all(steps)
    assert.equal(passed, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert.ok(Math.max(...counts) <= 3, `${counts}`)
    // The last turn had room left; a whole turn without steps ends the counting.
    await turn()
    await turn()
    await step(10)
    await turn()
    await turn()
  }
})

test.run()
