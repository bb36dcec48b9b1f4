import { execFileSync } from 'node:child_process'
import { readFile, symlink } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import changes from '../../../../plugins/desk/changes/index.js'
import audit from '../../../../plugins/platform/audit/index.js'
import configuration from '../../../../plugins/platform/configuration/index.js'
import redaction from '../../../../plugins/platform/redaction/index.js'
import { machineTimezone } from '../../../../plugins/work/automation/zone.js'
import { label, testCases } from '../../../fixtures/cases.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { bench } from './bench.js'

const plugins = [configuration]
const morning = { mode: 'cron', expr: '0 9 * * 1-5' }
const body = (schedule: unknown, name = 'demo') => ({
  ...{ name, agent_name: 'report', prompt: 'Write the report.', scope: 'global', schedule },
})

test('a cron expression is read in the zone of the machine unless the job or the setting names another', async () => {
  const b = await bench({ plugins, env: { TZ: 'America/Sao_Paulo' } })
  const create = async (schedule: unknown, name: string) =>
    (await b.request('POST', '/api/automation/jobs', body(schedule, name))).body.job
  const local = await create(morning, 'local')
  assert.is(local.schedule_text, 'At 09:00, Monday through Friday (America/Sao_Paulo)')
  const next = await b.until(async () => (await b.job(local.id)).next_run, 'the job is planned')
  assert.is(next, '2030-01-01T12:00:00.000Z')
  const vienna = await create({ ...morning, timezone: 'Europe/Vienna' }, 'vienna')
  assert.is(vienna.schedule_text, 'At 09:00, Monday through Friday (Europe/Vienna)')
  assert.is(
    await b.until(async () => (await b.job(vienna.id)).next_run, 'the job is planned'),
    '2030-01-01T08:00:00.000Z',
  )
  const once = await create({ mode: 'at', time: '2030-06-01T12:00:00Z' }, 'once')
  assert.is(once.schedule_text, 'Once, 2030-06-01 09:00 (America/Sao_Paulo)')
  const listed = (await b.request('GET', '/api/automation/jobs')).body.jobs
  assert.equal(
    listed.map((job: { schedule_text: string }) => job.schedule_text),
    [once, vienna, local].map(job => job.schedule_text),
  )
  assert.is(
    (await b.request('GET', '/api/automation/simulation?part=jobs')).body.simulation.timezone,
    'America/Sao_Paulo',
  )
  await b.end()
})

test('the setting overrides the zone of the machine, and an invalid zone is refused', async () => {
  const config = { automation: { timezone: 'Asia/Tokyo' } }
  const b = await bench({ plugins, config, env: { TZ: 'America/Sao_Paulo' } })
  const { job } = (await b.request('POST', '/api/automation/jobs', body(morning))).body
  assert.is(job.schedule_text, 'At 09:00, Monday through Friday (Asia/Tokyo)')
  await b.end()
})

const texts: readonly (readonly [expr: string, text: string])[] = [
  ['@daily', 'At 00:00 (UTC)'],
  ['@hourly', 'Every hour (UTC)'],
  ['@weekly', 'At 00:00, only on Sunday (UTC)'],
  ['@monthly', 'At 00:00, on day 1 of the month (UTC)'],
  ['@yearly', 'At 00:00, on day 1 of the month, only in January (UTC)'],
  ['0 9 1 * 1', 'At 09:00, on day 1 of the month or on Monday (UTC)'],
  ['0 9 */2 * 1', 'At 09:00, every 2 days in a month, only on Monday (UTC)'],
  ['30 2,14 * * *', 'At 02:30 and 14:30 (UTC)'],
]
testCases({
  open: () => bench({ plugins, env: { TZ: 'UTC' } }),
  close: b => b.end(),
  cases: texts,
  name: ([expr, text]) => `the schedule ${expr} is described as "${text}"`,
  run: async (b, [expr, text]) => {
    const { status, body: reply } = await b.request('POST', '/api/automation/jobs', body({ mode: 'cron', expr }, expr))
    assert.is(status, 201, expr)
    assert.is(reply.job.schedule_text, text)
    assert.is(reply.job.schedule.expr, expr, 'the schedule stays as it was written')
  },
  after: [
    'a job with a nickname is planned',
    async b => {
      const jobs = (await b.request('GET', '/api/automation/jobs')).body.jobs
      const daily = jobs.find(({ name }: { name: string }) => name === '@daily')
      assert.is(
        await b.until(async () => (await b.job(daily.id)).next_run, 'it is planned'),
        '2030-01-02T00:00:00.000Z',
      )
    },
  ],
})

testCases({
  open: () => bench({ plugins }),
  close: b => b.end(),
  cases: [
    [{ mode: 'cron', expr: '0 0 30 2 *' }, 'schedule.expr: "0 0 30 2 *" never matches: no year has such a day'],
    [{ mode: 'cron', expr: '0 9 31 4,6 *' }, 'never matches'],
    [{ mode: 'cron', expr: '@reboot' }, 'no job runs at the start of the machine; use one of @hourly, @daily'],
    [
      { mode: 'cron', expr: `${'0,'.repeat(1000)}0 * * * *` },
      'schedule.expr: has 2009 characters; at most 256 are allowed',
    ],
    [{ mode: 'cron', expr: '@often' }, 'schedule.expr: "@often": it is not known'],
    [{ mode: 'at', time: '2030-02-31T09:00:00Z' }, 'there is no "2030-02-31T09:00:00Z"'],
    [{ mode: 'at', time: '2030-06-31T09:00:00+02:00' }, 'there is no'],
    [{ mode: 'at', time: '2031-02-29T09:00:00Z' }, 'there is no'],
    [{ mode: 'at', time: '2030-01-31T24:00:00Z' }, 'there is no'],
    [{ mode: 'at', time: 'tomorrow' }, 'must be an RFC 3339 time'],
    [{ mode: 'cron', expr: '0 9 * * *', timezone: 'Mars/Olympus' }, 'must be an IANA name'],
  ] as const,
  name: ([schedule]) => `a schedule that never occurs is refused with the reason: ${label(schedule, 50)}`,
  run: async (b, [schedule, text]) => {
    const { status, body: reply } = await b.request('POST', '/api/automation/jobs', body(schedule))
    assert.is(status, 400)
    assert.ok(reply.error.includes(text), `${JSON.stringify(reply)} names ${text}`)
    assert.is.not((await b.put('record', body(schedule))).status, 201)
  },
  after: [
    'a leap day is a valid time',
    async b => {
      const leap = await b.request('POST', '/api/automation/jobs', body({ mode: 'at', time: '2032-02-29T09:00:00Z' }))
      assert.is(leap.status, 201)
    },
  ],
})

test('a home with cron jobs from before the local zone default keeps UTC', async () => {
  const env = { TZ: 'America/Sao_Paulo' }
  const b = await bench({ plugins, env: { TZ: 'UTC' } })
  await b.put('daily', { name: 'daily', agent_name: 'report', prompt: 'Go.', schedule: morning })
  const due = (await b.job('daily')).next_run
  await b.kernel.close()
  const forget = "DROP TABLE automation_kept_zone; DELETE FROM kernel_migration WHERE id = 'kept-zone'"
  execFileSync('sqlite3', [path.join(b.home, 'svc.db'), forget])
  const next = await bench({ home: b.home, plugins, env })
  assert.is((await next.job('daily')).next_run, due)
  assert.is((await next.job('daily')).schedule_text, 'At 09:00, Monday through Friday (UTC)')
  const written = async () => JSON.parse(await readFile(path.join(b.home, 'config.json'), 'utf8')).automation?.timezone
  assert.is(await written(), 'UTC')
  const kept = async (at: typeof next) => {
    const { items } = (await at.request('GET', '/api/doctor?only=automation')).body
    return items.find(({ code }: { code: string }) => code === 'automation_timezone_kept')
  }
  assert.match((await kept(next)).message, 'America/Sao_Paulo')
  await next.kernel.close()
  const config = { automation: { timezone: 'local' } }
  const moved = await bench({ home: b.home, plugins, env, config })
  assert.is(await moved.until(async () => (await moved.job('daily')).next_run, 'planned'), '2030-01-01T12:00:00.000Z')
  assert.is(await kept(moved), undefined)
  assert.is(await written(), 'local')
  await moved.end()
})

test('an older home without cron expressions or with its own zone is not changed', async () => {
  for (const [schedule, config] of [
    [{ mode: 'every', interval: '1h' }, {}],
    [{ ...morning, timezone: 'Asia/Tokyo' }, {}],
    [morning, { automation: { timezone: 'Asia/Tokyo' } }],
  ] as const) {
    const b = await bench({ plugins, config, env: { TZ: 'America/Sao_Paulo' } })
    await b.put('one', { name: 'one', agent_name: 'report', prompt: 'Go.', schedule })
    await b.kernel.close()
    const forget = "DROP TABLE automation_kept_zone; DELETE FROM kernel_migration WHERE id = 'kept-zone'"
    execFileSync('sqlite3', [path.join(b.home, 'svc.db'), forget])
    const next = await bench({ home: b.home, plugins, env: { TZ: 'America/Sao_Paulo' } })
    assert.equal(JSON.parse(await readFile(path.join(b.home, 'config.json'), 'utf8')), config)
    await next.end()
  }
})

test('a plan of a job describes its schedule or its refusal', async () => {
  const b = await bench({ plugins: [...plugins, audit, redaction, changes], env: { TZ: 'Europe/Vienna' } })
  const plan = async (schedule: unknown) => {
    const request = { method: 'POST', path: '/api/automation/jobs', body: body(schedule) }
    return (await b.request('POST', '/api/changes/plan', request)).body.plan.notes
  }
  assert.equal(await plan(morning), ['Schedule: At 09:00, Monday through Friday (Europe/Vienna)'])
  assert.match((await plan({ mode: 'cron', expr: '0 0 30 2 *' }))[0], 'It would be refused: schedule.expr')
  assert.is((await b.request('GET', '/api/automation/jobs')).body.jobs.length, 0)
  await b.end()
})

test('an empty TZ is UTC like in the C library; without one the machine zone applies', async () => {
  const link = path.join(await temporaryFolder('zone'), 'localtime')
  await symlink('/usr/share/zoneinfo/Europe/Vienna', link)
  assert.is(machineTimezone('', link), 'UTC')
  assert.is(machineTimezone(undefined, link), 'Europe/Vienna')
  assert.is(machineTimezone(':America/New_York', link), 'America/New_York')
})

test.run()
