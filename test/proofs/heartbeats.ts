// Proves heartbeats: `npm run prove:heartbeats -- [--zones N] [--days N] [--year] [--seed N]`. In each zone an agent has a policy with
// windows of chance; a daemon on a virtual clock wakes their sessions, and every wake-up has to come in the very minute in
// which a simulation says it that looks at the clock of the zone every minute. Days lie around the two nights in which most
// zones change their clocks, unless they are a whole year; the minutes around every change of the year are compared in any
// case. With `--year` it is a whole year of both, the daemon's and every minute of the clocks: a quarter of an hour, while the
// default takes ten seconds. On a slow disk TMPDIR=/dev/shm helps. A window that is counted in UTC, a step over a change of clocks
// (`#step` of plugins/agents/heartbeats/windows.ts) or a cap that is not kept fails it.
import { parseArgs } from 'node:util'
import { compare } from './heartbeats/compare.js'
import { compareSchedules, compareYear } from './heartbeats/schedules.js'

const { values } = parseArgs({
  options: {
    zones: { type: 'string', default: '40' },
    days: { type: 'string' },
    year: { type: 'boolean', default: false },
    seed: { type: 'string', default: '1' },
  },
})
const [zones, seed] = [Number(values.zones), Number(values.seed)]
const days = Number(values.days ?? (values.year ? 365 : 2))
const DAY_MS = 24 * 60 * 60_000
/** Half a minute past, so that no session is made at a whole one. */
const around = (instant: number, length: number) => ({ start: instant - (length * DAY_MS) / 2 + 30_000, days: length })
const periods =
  days >= 365
    ? [{ start: Date.UTC(2026, 0, 1, 0, 0, 30), days }]
    : [around(Date.UTC(2026, 2, 29, 1), Math.ceil(days / 2)), around(Date.UTC(2026, 9, 25, 1), Math.floor(days / 2))]

let failed = false
const tell = (what: string, seen: number, wrong: readonly string[], began: number) => {
  console.log(`${what}: ${seen} compared, ${wrong.length} wrong, ${Date.now() - began} ms`)
  for (const line of wrong.slice(0, 10)) console.log(`  ${line}`)
  if (wrong.length > 0 || seen === 0) failed = true
}
if (values.year) {
  const began = Date.now()
  const { minutes, wrong } = compareYear({ zones, seed, year: 2026 })
  tell(`every minute of a year by ${zones} clocks`, minutes, wrong, began)
}
const first = Date.now()
const { minutes, wrong } = compareSchedules({ zones, seed, year: 2026, hours: days >= 365 ? 48 : 6 })
tell(`minutes around the changes of ${zones} clocks`, minutes, wrong, first)
for (const period of periods.filter(({ days: length }) => length > 0)) {
  const began = Date.now()
  const run = await compare({ ...period, zones, seed })
  const what = `wake-ups of ${zones} zones, ${period.days} days from ${new Date(period.start).toISOString()}`
  tell(what, run.wakes, run.wrong, began)
}
process.exitCode = failed ? 1 : 0
