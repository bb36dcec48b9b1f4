import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Schedule, ZoneClocks } from '../../../../plugins/agents/heartbeats/windows.js'
import { compare } from '../../../proofs/heartbeats/compare.js'
import { compareSchedules } from '../../../proofs/heartbeats/schedules.js'

const at = (text: string) => Date.parse(text)
const next = (window: object, from: string, more: object = {}) => {
  const schedule = new Schedule({ active_hours: [window as never], ...more }, new ZoneClocks())
  const found = schedule.nextOpen(at(from))
  return found === undefined ? undefined : new Date(found).toISOString().slice(0, 16)
}

test('a window in a skipped hour opens after it, one in a repeated hour opens twice', () => {
  const gap = { timezone: 'Europe/Paris', start: '02:15', end: '03:30' }
  assert.is(next(gap, '2026-03-29T00:00:00Z'), '2026-03-29T01:00')
  const inside = { timezone: 'Europe/Paris', start: '02:15', end: '02:45' }
  assert.is(next(inside, '2026-03-29T00:00:00Z'), '2026-03-30T00:15')
  assert.is(next(inside, '2026-10-25T00:00:00Z'), '2026-10-25T00:15')
  assert.is(next(inside, '2026-10-25T00:45:00Z'), '2026-10-25T01:15')
  assert.is(next(inside, '2026-10-25T01:45:00Z'), '2026-10-26T01:15')
})

test('windows cross midnight and unite, quiet ones are subtracted, and an empty result never opens', () => {
  const night = { timezone: 'UTC', start: '22:00', end: '02:00' }
  assert.is(next(night, '2026-01-01T12:00:01Z'), '2026-01-01T22:00')
  assert.is(next(night, '2026-01-01T01:58:01Z'), '2026-01-01T01:59')
  assert.is(next(night, '2026-01-01T22:00:00Z', { quiet_windows: [{ ...night, end: '23:10' }] }), '2026-01-01T23:10')
  assert.is(next(night, '2026-01-01T22:00:00Z', { quiet_windows: [night] }), undefined)
  const east = { timezone: 'Asia/Tokyo', start: '12:00', end: '13:00' }
  assert.is(next(night, '2026-01-01T02:30:00Z', { active_hours: [night, east] }), '2026-01-01T03:00')
})

test('the schedule equals a minute-by-minute scan around every clock change of a year in 40 zones', () => {
  const { minutes, wrong } = compareSchedules({ zones: 40, seed: Number(process.env.SEED ?? 7), year: 2026, hours: 2 })
  assert.equal(wrong.slice(0, 5), [])
  assert.ok(minutes > 5000, `${minutes} minutes`)
})

test('a daemon wakes in the minutes of a simulation, up to the limit at once', async () => {
  const { wakes, wrong } = await compare({ zones: 8, days: 0.3, seed: 3, start: at('2026-03-28T22:00:30Z') })
  assert.equal(wrong, [])
  assert.ok(wakes > 10, `${wakes} wake-ups`)
})

test.run()
