import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { openStore } from '../../../../kernel/store/index.js'
import { type World, world } from './world.js'

const DAY = 86_400_000
const START = Date.UTC(2030, 5, 20, 12)

const completed = async (of: World, query = ''): Promise<Record<string, number>> => {
  const { outcomes } = await of.overview(query)
  const days = outcomes.days as { date: string; completed: number }[]
  return Object.fromEntries(days.filter(day => day.completed > 0).map(day => [day.date, day.completed]))
}
const events = (of: World) => of.rows('SELECT sum(events) FROM observe_hour')[0]?.[0]

test('a home of the previous version has the logged events and later ones once', async () => {
  const of = await world({ at: START - 3 * DAY, without: true })
  const [scope] = of.workspaces
  const runs = (n: number) => Array.from({ length: n }, () => ({ name: 'task.run_completed', scope }))
  await of.emit(runs(700))
  await of.clock.advance(DAY)
  await of.emit(runs(600))
  await of.clock.advance(2 * DAY)
  await of.restart()
  await of.emit(runs(5))
  // A step at a time: the daemon is not held up, and one that ends in between goes on where it was.
  await of.pass(60)
  const before = Object.values(await completed(of)).reduce((sum, n) => sum + n, 0)
  assert.ok(before < 1305, `${before}`)
  await of.restart()
  await of.pass(60_000)
  await of.restart()
  await of.pass(60_000)
  const expected = { '2030-06-17': 700, '2030-06-18': 600, '2030-06-20': 5 }
  assert.equal(await completed(of), expected)
  assert.equal(await completed(of, `?workspace=${scope}`), expected)
  assert.equal(await completed(of, `?workspace=${of.workspaces[1]}`), {})
  const stored = of.rows('SELECT count(*) FROM kernel_event')[0]?.[0]
  const totals = (await of.overview()).pulse.buckets.reduce(
    (sum: number, { events: n }: { events: number }) => sum + n,
    0,
  )
  assert.is(totals, stored)
  await of.close()
})

test('days with only logged counts are outcomes without hours', async () => {
  const of = await world({ at: START, without: true })
  const [scope = '', other = ''] = of.workspaces
  await of.pass(0)
  const store = await of.stopped(home => openStore({ path: path.join(home, 'svc.db'), now: () => START }))
  const row = (ago: number, name: string, place: string, subject: string, n: number) => [
    ...[Math.floor(START / DAY) - ago, name, place, subject, n],
  ]
  await store.db.tx(t => {
    for (const values of [
      row(9, 'task.run_completed', scope, 'a', 2),
      row(9, 'task.run_completed', scope, 'b', 1),
      row(9, 'task.run_completed', other, 'c', 4),
      row(9, 'task.run_completed', '', 'd', 8),
      row(10, 'task.run_failed', '', 'e', 16),
      row(10, 'record.put', '', 'f', 99),
      row(200, 'task.run_completed', '', 'g', 32),
    ])
      t.run('INSERT INTO kernel_event_day (day, name, scope, subject, n) VALUES (?, ?, ?, ?, ?)', values)
  })
  await store.close()
  await of.restart()
  await of.pass(60_000)
  assert.equal(await completed(of), { '2030-06-11': 15 })
  assert.equal(await completed(of, `?workspace=${scope}`), { '2030-06-11': 3 })
  const { outcomes, pulse } = await of.overview()
  assert.equal([outcomes.failed, pulse.busiest.events < 50], [16, true])
  assert.is(of.rows("SELECT count(*) FROM observe_day WHERE day < '2030-01-01'")[0]?.[0], 0)
  await of.close()
})

test('rows are kept for 90 days', async () => {
  const of = await world({ at: START })
  const [scope] = of.workspaces
  await of.emit([{ name: 'task.run_completed', scope }])
  await of.pass(5000)
  const oldest = () => of.rows('SELECT min(day) FROM observe_day')[0]?.[0]
  assert.is(oldest(), '2030-06-20')
  const before = events(of)
  await of.clock.advance(89 * DAY)
  await of.emit([{ name: 'task.run_failed', scope }])
  await of.pass(5000)
  assert.equal([oldest(), events(of)], ['2030-06-20', Number(before) + 1])
  await of.clock.advance(DAY)
  await of.emit([{ name: 'task.run_failed', scope }])
  await of.pass(5000)
  assert.equal([oldest(), events(of)], ['2030-09-17', 2])
  await of.close()
})

test('nothing is counted while the setting is off, and not later either', async () => {
  const of = await world({ at: START })
  const [scope] = of.workspaces
  const failed = () => of.emit([{ name: 'task.run_failed', scope }])
  const count = async () => (await of.overview()).outcomes.failed
  const restart = async (enabled: boolean) => {
    await of.stopped(home => writeFile(path.join(home, 'config.json'), JSON.stringify({ observability: { enabled } })))
    await of.restart()
  }
  await failed()
  assert.is(await count(), 1)
  await of.pass(5000)
  await restart(false)
  await failed()
  await of.pass(5000)
  assert.is(await count(), 1)
  await restart(false)
  await failed()
  await restart(true)
  assert.is(await count(), 1)
  await failed()
  assert.is(await count(), 2)
  await of.pass(5000)
  assert.is(await count(), 2)
  await of.close()
})

test('scopes other than workspaces create no rows', async () => {
  const of = await world({ at: START })
  await of.emit(Array.from({ length: 300 }, (_, n) => ({ name: 'task.run_completed', scope: `scope-${n}` })))
  await of.pass(5000)
  assert.equal(of.rows('SELECT workspace_id, runs_completed FROM observe_day'), [['', 300]])
  await of.close()
})

test.run()
