import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { AutomationProcess } from './automation-process.js'
import { Child } from './child.js'
import type { Context } from './context.js'
import { inTurn, median, mib, ms, ratioOf } from './measure.js'
import type { Row } from './report.js'

const CONFIG = {
  automation: { max_concurrent_jobs: 1000, default_fire_limit: { max: 1_000_000, window: '1h' } },
}

/** What is asked of them, with the longest gap of the event loop meanwhile. */
const REQUESTS = [
  ['list, first page', '/api/automation/jobs'],
  ['list, all of one scope', '/api/automation/jobs?scope=workspace'],
  ['list, searched', '/api/automation/jobs?q=nowhere'],
  ['status', '/api/status'],
  ['doctor', '/api/doctor'],
] as const

/** What many jobs cost that wait, and how late those are that are due at once; beside a daemon that has only those. */
export async function benchAutomation(context: Context): Promise<void> {
  const [jobs, fires, rounds] = context.quick ? [10_000, 200, 2] : [100_000, 1000, 5]
  const many = await started(context, 'jobs-many', jobs)
  const few = await started(context, 'jobs-few', fires)
  const [manyMemory, fewMemory] = [await many.child.call('memory'), await few.child.call('memory')]
  const aJob = (a: number, b: number) => `${((a - b) / (jobs - fires)).toFixed(0)} bytes`
  const seconds = context.quick ? 2 : 5
  const [manyIdle = [], fewIdle = []] = await inTurn(
    rounds,
    [many, few].map(
      ({ child }) =>
        () =>
          child.call('idle', seconds),
    ),
  )
  const [manyLate = [], fewLate = []] = await inTurn(
    rounds,
    [many, few].map(
      ({ child }) =>
        () =>
          child.call('fire', fires),
    ),
  )
  const beside = `with ${fires} jobs: `
  const rows: Row[] = []
  for (const [what, url] of REQUESTS) {
    const [a, b] = [await many.child.call('get', url), await few.child.call('get', url)]
    const textOf = ({ took, gap }: typeof a) => `${ms(took)}, gap ${ms(gap)}`
    rows.push({ what, ours: textOf(a), baseline: beside + textOf(b) })
  }
  await many.child.kill()
  await few.child.kill()
  const late = (what: string, pick: (one: (typeof manyLate)[number]) => number, atMost?: number): Row => {
    const [a, b] = [manyLate.map(pick), fewLate.map(pick)]
    const judged = atMost === undefined ? {} : { value: median(a), target: { atMost, unit: 'ms' } }
    return { what, ours: ms(median(a)), baseline: beside + ms(median(b)), ratio: ratioOf(a, b), ...judged }
  }
  const instant = `${fires} due at one instant, until the run is durable`
  context.report.section(`Automation, ${jobs} jobs`, [
    {
      what: 'start with all of them',
      ours: ms(many.boot),
      baseline: beside + ms(few.boot),
      ratio: many.boot / few.boot,
    },
    {
      what: 'memory',
      ours: mib(manyMemory.rss),
      baseline: beside + mib(fewMemory.rss),
      ratio: manyMemory.rss / fewMemory.rss,
    },
    { what: 'memory a job', ours: aJob(manyMemory.rss, fewMemory.rss) },
    { what: 'of that in the heap of JavaScript', ours: aJob(manyMemory.heap, fewMemory.heap) },
    {
      what: 'CPU of a second of waiting',
      ours: ms(median(manyIdle)),
      baseline: beside + ms(median(fewIdle)),
      ratio: ratioOf(manyIdle, fewIdle),
    },
    late(`${instant}, p50`, one => one.p50),
    late(`${instant}, p99`, one => one.p99, 250),
    late('… processor time until 99 of 100 are', one => one.cpu),
    late('longest gap of the event loop meanwhile', one => one.gap, 50),
    ...rows,
  ])
}

/** A daemon that found its jobs at its start. */
async function started({ temp, program }: Context, name: string, jobs: number) {
  const home = path.join(temp, name)
  mkdirSync(home, { mode: 0o700 })
  writeFileSync(path.join(home, 'config.json'), JSON.stringify(CONFIG))
  const start = () => Child.start<AutomationProcess>(program('automation-process'), [home])
  const filling = start()
  await filling.call('boot')
  await filling.call('fill', jobs)
  await filling.call('close')
  await filling.kill()
  const child = start()
  return { child, boot: await child.call('boot') }
}
