import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { Child } from './child.js'
import type { Context } from './context.js'
import { ms, pairs } from './measure.js'
import type { OverviewHandlers } from './overview-process.js'
import type { Row } from './report.js'

const EVENTS = 1_000_000
const SESSIONS = 9000

/** The overview over 30 days of many events beside that of an empty home, and what counting costs an event. */
export async function benchOverview({ program, temp, quick, report }: Context): Promise<void> {
  const home = (name: string) => {
    const folder = path.join(temp, `overview-${name}`)
    mkdirSync(folder, { mode: 0o700 })
    return folder
  }
  const open = async (folder: string, withOverview: boolean) => {
    const child = Child.start<OverviewHandlers>(program('overview-process'))
    await child.call('open', folder, withOverview)
    return child
  }
  const full = home('full')
  const filling = await open(full, true)
  await filling.call('close')
  await filling.call('fill', full, EVENTS, SESSIONS)
  await filling.kill()
  const [many, none] = [await open(full, true), await open(home('none'), true)]
  const rows: Row[] = []
  const count = quick ? 100 : 400
  for (const window of ['30', '90']) {
    const [ours, theirs] = [await many.call('overviews', count, window), await none.call('overviews', count, window)]
    rows.push({
      what: `overview over 30 days of ${EVENTS} events, ${SESSIONS} sessions, usage of ${window} days`,
      ours: `p50 ${ms(ours.p50)} p99 ${ms(ours.p99)}, processor ${ms(ours.used)}`,
      baseline: `empty home: p50 ${ms(theirs.p50)} p99 ${ms(theirs.p99)}, processor ${ms(theirs.used)}`,
      value: ours.p99,
      target: { atMost: 50, unit: 'ms, p99' },
    })
  }
  for (const child of [many, none]) await child.kill()
  const [counting, bare] = [await open(home('counting'), true), await open(home('bare'), false)]
  const [rounds, events] = quick ? [5, 3200] : [15, 6400]
  for (const [child, isCounted] of [
    [counting, true],
    [bare, false],
  ] as const)
    await child.call('emit', 2 * events, isCounted)
  const { a, b, ratio } = await pairs(
    rounds,
    () => counting.call('emit', events, true),
    () => bare.call('emit', events, false),
  )
  const what = 'processor time of a durable event, until it is counted'
  rows.push({ what, ours: ms(a), baseline: `without the overview: ${ms(b)}`, ratio })
  const [found, emitted] = await counting.call('checked')
  if (found !== emitted) throw new Error(`${found} of ${emitted} events are counted`)
  rows.push({ what: 'events that are counted, of those of the log', ours: `${found}`, baseline: `${emitted}` })
  for (const child of [counting, bare]) await child.kill()
  report.section('Overview', rows)
}
