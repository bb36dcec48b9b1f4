import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { RouteCommand } from '../../cli/commands/command-data.js'
import { expandShorthands, shorthandsFor } from '../../cli/commands/shorthands.js'

const entry = {
  shorthands: [
    { option: 'every', member: 'plan', value: { mode: 'every', interval: '$' }, type: 'text', summary: '' },
    {
      option: 'cron',
      member: 'plan',
      value: { mode: 'cron', expr: '$', timezone: '$zone' },
      type: 'text',
      summary: '',
    },
    { option: 'at', member: 'plan', value: { mode: 'at', time: '$' }, type: 'time', summary: '' },
  ],
} as unknown as RouteCommand

const time = (at: string, zone?: string) =>
  (expandShorthands(entry, { at, ...(zone === undefined ? {} : { 'time-zone': zone }) }).plan as { time: string }).time

test('a short option sets its member', () => {
  assert.equal(expandShorthands(entry, { every: '1h' }), { plan: { mode: 'every', interval: '1h' } })
  assert.equal(expandShorthands(entry, { name: 'x' }), {})
  assert.equal(time('2030-01-31T09:00:00+02:00'), '2030-01-31T09:00:00+02:00')
  assert.equal(time('soon'), 'soon')
})

test('a member lists its short options', () => {
  const parameter = { name: 'plan', option: 'plan', in: 'body', type: 'json', required: true } as const
  assert.equal(shorthandsFor(entry, parameter), ['--every', '--cron', '--at'])
  assert.equal(shorthandsFor(entry, { ...parameter, in: 'query' }), [])
  assert.equal(shorthandsFor(entry, { ...parameter, name: 'name' }), [])
})

test('a time without a zone is read in the named zone, across both clock changes', () => {
  assert.is(time('2030-01-31T09:00', 'Europe/Paris'), '2030-01-31T08:00:00.000Z')
  assert.is(time('2030-07-31 09:00:30', 'Europe/Paris'), '2030-07-31T07:00:30.000Z')
  assert.is(time('2030-03-31T03:00', 'Europe/Paris'), '2030-03-31T01:00:00.000Z')
  assert.is(time('2030-10-27T04:00', 'Europe/Paris'), '2030-10-27T03:00:00.000Z')
  assert.is(time('2030-01-01T00:00', 'Asia/Kathmandu'), '2029-12-31T18:15:00.000Z')
  assert.is(time('2030-01-31T09:00', 'UTC'), '2030-01-31T09:00:00.000Z')
})

test('a skipped local time is the end of the gap, and an ambiguous one is the earlier', () => {
  assert.is(time('2027-03-28T02:30', 'Europe/Vienna'), '2027-03-28T01:00:00.000Z')
  assert.is(time('2027-10-31T02:30', 'Europe/Vienna'), '2027-10-31T00:30:00.000Z')
  assert.is(time('2027-09-05T00:10', 'America/Santiago'), '2027-09-05T04:00:00.000Z')
  assert.is(time('2027-04-04T01:45', 'Australia/Lord_Howe'), '2027-04-03T14:45:00.000Z')
  assert.is(time('2027-11-07T01:30', 'America/New_York'), '2027-11-07T05:30:00.000Z')
})

test('an invalid date is not moved to another day', () => {
  assert.is(time('2030-02-31T09:00', 'UTC'), '2030-02-31T09:00:00Z')
  assert.is(time('2030-01-31 24:00', 'UTC'), '2030-01-31T24:00:00Z')
})

test('the zone of a cron expression is a separate member', () => {
  const zoned = expandShorthands(entry, { cron: '0 9 * * *', 'time-zone': 'Europe/Paris' })
  assert.equal(zoned, { plan: { mode: 'cron', expr: '0 9 * * *', timezone: 'Europe/Paris' } })
  assert.equal(expandShorthands(entry, { cron: '0 9 * * *' }), { plan: { mode: 'cron', expr: '0 9 * * *' } })
})

test('invalid shorthands are refused', () => {
  for (const options of [
    { every: '1h', at: '2030-01-31T09:00' },
    { every: '1h', 'time-zone': 'Europe/Paris' },
    { at: '2030-01-31T09:00', 'time-zone': 'Europe/Nowhere' },
    { at: '2030-01-31T09:00Z', 'time-zone': 'Europe/Paris' },
  ] as Record<string, string>[])
    assert.throws(
      () => expandShorthands(entry, options),
      (error: { code: string }) => error.code === 'usage',
    )
})

test.run()
