import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Occurrences } from '../../../../plugins/work/automation/schedule.js'
import { occurrences } from '../../../proofs/schedules/oracle.js'
import { cronOf } from '../../../proofs/schedules/random-jobs.js'

const HOUR = 3_600_000
const DAY = 24 * HOUR

/** Changes of clocks by an hour, half an hour and two, in the night and at midnight. */
const CHANGES = [
  ['Europe/Vienna', '2027-03-28'],
  ['Europe/Vienna', '2027-10-31'],
  ['America/New_York', '2027-03-14'],
  ['America/New_York', '2027-11-07'],
  ['Australia/Lord_Howe', '2027-04-04'],
  ['Australia/Lord_Howe', '2027-10-03'],
  ['America/Santiago', '2027-04-04'],
  ['America/Santiago', '2027-09-05'],
  ['Asia/Beirut', '2027-03-28'],
  ['Asia/Beirut', '2027-10-31'],
  ['Antarctica/Troll', '2027-03-28'],
  ['Antarctica/Troll', '2027-10-31'],
  ['Africa/Casablanca', '2027-02-07'],
  ['Africa/Casablanca', '2027-03-14'],
  ['Pacific/Chatham', '2027-04-04'],
  ['Pacific/Chatham', '2027-09-26'],
  ['Asia/Kathmandu', '2027-03-28'],
  ['UTC', '2027-03-28'],
] as const

const MINUTES = ['30', '10,40', '15-45/15', '*/20']
const HOURS = ['2', '2,14', '0-3', '0-23/2', '*/3']
const DAYS = ['* * *', '1-7 * 0']

for (const [zone, day] of CHANGES) {
  test(`every time of lists, ranges and steps occurs once in ${zone} around ${day}`, () => {
    const start = Date.parse(day) - DAY
    const end = start + 3 * DAY
    const exprs = MINUTES.flatMap(minute => HOURS.flatMap(hour => DAYS.map(days => `${minute} ${hour} ${days}`)))
    const jobs = exprs.map(expr => ({
      id: expr,
      plan: { mode: 'cron' as const, expr, cron: cronOf(expr) },
      policy: 'replay' as const,
      graceSeconds: 0,
    }))
    const expected = occurrences(jobs, zone, start, end)
    for (const expr of exprs) {
      const wanted = expected.get(expr) ?? []
      const cron = new Occurrences({ mode: 'cron', expr }, zone)
      const seen: number[] = []
      for (let at = cron.after(0, start); at !== undefined && at <= end; at = cron.after(0, at)) {
        seen.push(at)
        if (seen.length > wanted.length) break
      }
      assert.equal(seen.map(text), wanted.map(text), `${expr} in ${zone}`)
      for (const [n, at] of wanted.entries()) {
        assert.is(cron.latest(start, at), at, `${expr}: the latest at ${text(at)}`)
        assert.is(cron.after(0, at - 1), at, `${expr}: the next before ${text(at)}`)
        if (n > 0) assert.is(cron.latest(start, at - 1), wanted[n - 1], `${expr}: the latest before ${text(at)}`)
      }
    }
  })
}

const text = (at: number) => new Date(at).toISOString()

test.run()
