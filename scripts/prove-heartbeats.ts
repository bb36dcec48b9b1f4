// Proves heartbeats: `npm run prove:heartbeats -- [--zones N] [--days N] [--seed N]`. In each zone an agent has a policy with
// windows of chance; a daemon on a virtual clock wakes their sessions, and every wake-up has to come in the very minute in
// which a simulation says it that looks at the clock of the zone every minute. Days are split over the weeks in which most
// zones change their clocks, unless they are a whole year. A window that is counted in UTC, a step over a change of clocks
// (`#step` of plugins/heartbeats/windows.ts) or a cap that is not kept fails it.
import { parseArgs } from 'node:util'
import { compare } from './prove-heartbeats/compare.js'

const { values } = parseArgs({
  options: {
    zones: { type: 'string', default: '40' },
    days: { type: 'string', default: '12' },
    seed: { type: 'string', default: '1' },
  },
})
const [zones, days, seed] = [Number(values.zones), Number(values.days), Number(values.seed)]
const periods =
  days >= 365
    ? [{ start: Date.UTC(2026, 0, 1, 0, 0, 30), days }]
    : [
        { start: Date.UTC(2026, 2, 27, 0, 0, 30), days: Math.ceil(days / 2) },
        { start: Date.UTC(2026, 9, 23, 0, 0, 30), days: Math.floor(days / 2) },
      ]
let failed = false
for (const period of periods.filter(period => period.days > 0)) {
  const began = Date.now()
  const { wakes, wrong } = await compare({ ...period, zones, seed })
  const what = `${zones} zones, ${period.days} days from ${new Date(period.start).toISOString()}`
  console.log(`${what}: ${wakes} wake-ups, ${wrong.length} wrong, ${Date.now() - began} ms`)
  for (const line of wrong.slice(0, 10)) console.log(`  ${line}`)
  if (wrong.length > 0 || wakes === 0) failed = true
}
process.exitCode = failed ? 1 : 0
