import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { importCrontab } from '../../../cli/import/crontab.js'
import { sourceOf } from '../../../cli/import/foreign-file.js'
import type { WantedJob } from '../../../cli/import/plan.js'
import { Occurrences } from '../../../plugins/work/automation/schedule.js'
import { around } from './around.js'

const read = (text: string, more = {}) => importCrontab([sourceOf('crontab', Buffer.from(text))], around(more))
const jobsOf = (found: ReturnType<typeof read>) => found.wanted.filter((one): one is WantedJob => one.kind === 'job')

const NAMES: Record<string, number> = Object.fromEntries([
  ...['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'].map((name, at) => [name, at]),
  ...['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'].map((name, at) => [
    name,
    at + 1,
  ]),
])

/** What crontab(5) says of five fields, minute by minute: nothing of the code under test. */
function matches(expr: string, at: Date): boolean {
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = expr.toLowerCase().split(/\s+/)
  const number = (text: string) => NAMES[text] ?? Number(text)
  const has = (field: string, value: number, most: number) =>
    field.split(',').some(part => {
      const [range = '', step = '1'] = part.split('/')
      const [low, high] = range === '*' ? [undefined, undefined] : range.split('-').map(number)
      const from = low ?? (most === 31 || most === 12 ? 1 : 0)
      const to = range === '*' ? most : (high ?? from)
      return value >= from && value <= to && (value - from) % Number(step) === 0
    })
  const days = has(day, at.getUTCDate(), 31)
  const weekdays = has(weekday, at.getUTCDay(), 6) || (at.getUTCDay() === 0 && has(weekday, 7, 7))
  const isDue = day.startsWith('*') || weekday.startsWith('*') ? days && weekdays : days || weekdays
  return (
    has(minute, at.getUTCMinutes(), 59) &&
    has(hour, at.getUTCHours(), 23) &&
    has(month, at.getUTCMonth() + 1, 12) &&
    isDue
  )
}

function nextFive(expr: string, from: number): string[] {
  const due: string[] = []
  for (let at = from + 60_000; due.length < 5 && at < from + 800 * 86_400_000; at += 60_000) {
    // Days on which nothing is due are not looked at minute by minute.
    if (at % 86_400_000 === 0 && !matches(`* * ${expr.split(/\s+/).slice(2).join(' ')}`, new Date(at))) at += 86_340_000
    else if (matches(expr, new Date(at))) due.push(new Date(at).toISOString())
  }
  return due
}

const LINES = [
  ...[
    '* * * * *',
    '*/5 * * * *',
    '0 * * * *',
    '30 2 * * *',
    '15,45 * * * *',
    '0 9-17 * * *',
    '0 9-17/2 * * 1-5',
    '5-59/10 * * * *',
  ],
  ...[
    '0 0 1 * *',
    '0 0 31 * *',
    '0 0 1,15 * *',
    '0 0 1 1 *',
    '0 0 29 2 *',
    '0 0 * * 0',
    '0 0 * * 7',
    '0 0 * * sun',
    '0 0 * * MON-FRI',
  ],
  ...[
    '0 0 * * 1-5',
    '0 0 * * 5-7',
    '0 0 * * 0-7',
    '0 0 * * 6,7',
    '0 0 * * sat,sun',
    '0 12 1 * 1',
    '0 12 1,15 * fri',
    '0 9 */2 * 1',
  ],
  ...[
    '0 9 1 * */2',
    '*/7 */5 */3 * *',
    '0 0 * jan *',
    '0 0 * JAN-MAR *',
    '0 0 1 */3 *',
    '0 22 * * 1-5/2',
    '23 0-23/2 * * *',
    '5 4 * * sun',
  ],
  ...[
    '0,30 8-18 * * 1,3,5',
    '59 23 31 12 *',
    '1-3,7,50-58/4 3 * * *',
    '0 4 8-14 * *',
    '0 4 8-14 * 6',
    '10 10 10 10 *',
    '0 6 * * tue-thu',
  ],
]

for (const line of LINES)
  test(`a job is due five times as in crontab(5): ${line}`, () => {
    const from = Date.UTC(2028, 1, 26, 22, 13)
    const [job] = jobsOf(read(`CRON_TZ=UTC\n${line} true`))
    assert.ok(job)
    const occurrences = new Occurrences(job.schedule, 'Asia/Tokyo')
    const due: string[] = []
    for (let at = from; due.length < 5; ) {
      at = occurrences.after(at, at) as number
      due.push(new Date(at).toISOString())
    }
    const expected = nextFive(line, from)
    assert.equal(due.slice(0, expected.length), expected)
    assert.ok(expected.length > 0)
  })

test('nicknames, variables, quotes, percent signs and the local time zone are imported', () => {
  const found = read(
    [
      '# a comment',
      '@hourly a',
      '@midnight b',
      '@weekly c',
      '@annually d',
      ' NAME = "in quotes" ',
      "OTHER='single'",
      "IT=it's",
      '0 1 * * * echo "$NAME"%first%second 5\\% ',
      'CRON_TZ=America/New_York',
      'SHELL=/bin/bash',
      '-*/10 * * * * quiet',
    ].join('\n'),
  )
  const jobs = jobsOf(found)
  assert.equal(
    jobs.map(({ schedule }) => [schedule.expr, schedule.timezone]),
    [
      ['0 * * * *', 'Europe/Berlin'],
      ['0 0 * * *', 'Europe/Berlin'],
      ['0 0 * * 0', 'Europe/Berlin'],
      ['0 0 1 1 *', 'Europe/Berlin'],
      ['0 1 * * *', 'Europe/Berlin'],
      ['*/10 * * * *', 'America/New_York'],
    ],
  )
  assert.is(
    jobs[4]?.prompt,
    `#!/bin/sh\nexport NAME='in quotes'\nexport OTHER='single'\nexport IT='it'\\''s'\ncd "$HOME"\nprintf '%s\\n' 'first\nsecond 5%' | {\necho "$NAME"\n}`,
  )
  assert.match(jobs[5]?.prompt ?? '', /^#!\/bin\/bash\n/)
  assert.equal(found.left, [])
  assert.is(found.wanted.filter(({ kind }) => kind === 'agent').length, 1)
})

test('unsupported lines are listed with number and reason', () => {
  const found = read(
    [
      '@reboot start',
      '@every_minute x',
      '0~30 1 * * * x',
      '5/10 * * * * x',
      '0 0 * * L x',
      '70 * * * * x',
      '10-5 * * * * x',
      '0 0 31 2 * never',
      '0 0 * *',
      '0 0 * * *',
      'CRON_TZ=Mars/Olympus',
      '0 0 * * * x',
      'CRON_TZ=UTC',
      'SHELL=/usr/bin/python3',
      '0 0 * * * x',
      'SHELL=/bin/sh',
      'MAILTO=root',
      'MAILTO=""',
      '0 0 * * * svc daemon restart',
      '\u001b[31mred',
    ].join('\n'),
  )
  assert.equal(jobsOf(found), [])
  assert.equal(
    found.left.map(({ line }) => line),
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 17, 19, 20],
  )
  for (const { why } of found.left) assert.ok(why.length > 10, why)
  assert.match(found.left[4]?.why ?? '', 'day of the week "L": values are 0 to 7 and names')
})

test('a system crontab is imported only for lines of the caller', () => {
  const text = '17 * * * * root cd / && run-parts /etc/cron.hourly\n0 1 * * *\tme\tbackup --all\n0 1 * * * me\n'
  const found = read(text, { hasUsers: true })
  assert.equal(
    jobsOf(found).map(({ prompt }) => prompt.split('\n').at(-1)),
    ['backup --all'],
  )
  assert.equal(
    found.left.map(({ line, what }) => [line, what]),
    [
      [1, 'root cd / && run-parts /etc/cron.hourly'],
      [3, 'me'],
    ],
  )
})

test('a command gets the same job name whatever its schedule and position', () => {
  const names = (text: string) => jobsOf(read(text)).map(({ name }) => name)
  const [first, second] = names('0 1 * * * /opt/My Backup.sh\n0 2 * * * /opt/My Backup.sh')
  assert.match(first ?? '', /^cron-my-[0-9a-f]{6}$/)
  assert.is(second, `${first}-2`)
  assert.equal(names('\n\n5 5 * * 1 /opt/My Backup.sh'), [first])
  assert.equal(
    names('* * * * * \u{1f600}').map(name => name.replace(/[0-9a-f]{6}$/, '')),
    ['cron-command-'],
  )
})

test('a command of another agent names that agent, and no agent is created', () => {
  const found = read('@daily x', { agent: 'report' })
  assert.equal(
    found.wanted.map(one => [one.kind, one.kind === 'job' && one.agent]),
    [['job', 'report']],
  )
})

test.run()
