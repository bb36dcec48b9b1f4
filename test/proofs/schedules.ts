// Proves schedules: `npm run prove:schedules -- [--zones N] [--years N] [--jobs N] [--mishaps N] [--seed N]`. In each zone a daemon on
// a virtual clock has jobs of every mode and policy, and lives through years in which it is restarted, killed, and has its
// clock set forward and back at instants of chance. An oracle that walks every minute of those years by the clocks that Intl
// shows says which occurrences there were: each has to be in exactly one of fired, coalesced and skipped, and none that came
// while the daemon ran may be anything but fired. All of it, 10 years of 40 zones, takes hours; the default less than a minute.
// On a slow disk TMPDIR=/dev/shm helps. A policy that drops an occurrence, or a cron expression that is read in UTC, fails it.
import { parseArgs } from 'node:util'
import { ZONES } from './heartbeats/compare.js'
import { firstSeed } from './library/seed.js'
import { accountsOf } from './schedules/accounts.js'
import { live } from './schedules/life.js'
import { occurrences } from './schedules/oracle.js'
import { randomJobs } from './schedules/random-jobs.js'

const { values } = parseArgs({
  options: {
    zones: { type: 'string', default: '3' },
    years: { type: 'string', default: '1' },
    jobs: { type: 'string', default: '6' },
    mishaps: { type: 'string', default: '8' },
    seed: { type: 'string', default: String(firstSeed()) },
  },
})
const [zones, years, jobs, mishaps, seed] = [values.zones, values.years, values.jobs, values.mishaps, values.seed].map(
  Number,
) as [number, number, number, number, number]
const DAY_MS = 24 * 60 * 60_000
const start = Date.UTC(2030, 0, 1)

const began = Date.now()
const wrong: string[] = []
const totals = { occurrences: 0, fired: 0, coalesced: 0, skipped: 0 }
/** The zones that change their clocks come first; which of them are tried is chance, unless it is all. */
const chosen = ZONES.map((_, n) => ZONES[(n + seed) % ZONES.length] as string).slice(0, zones)
for (const [n, timezone] of chosen.entries()) {
  const own = seed * 1000 + n
  const planned = randomJobs(jobs, own)
  const life = await live({
    timezone,
    start,
    end: start + years * 365 * DAY_MS,
    jobs: planned,
    mishaps: mishaps * years,
    seed: own,
  })
  const known = occurrences(planned, timezone, start, life.end)
  const seen = accountsOf(planned, known, life)
  for (const key of ['occurrences', 'fired', 'coalesced', 'skipped'] as const) totals[key] += seen[key]
  const what = `${timezone}: ${seen.occurrences} occurrences, ${life.stops} stops, ${life.kills} kills, ${life.jumps} jumps`
  console.log(`${what}, ${seen.wrong.length} wrong, ${Math.round((Date.now() - began) / 1000)} s`)
  for (const line of seen.wrong.slice(0, 10)) console.log(`  ${line}`)
  wrong.push(...seen.wrong)
}
console.log(`${JSON.stringify(totals)}, ${wrong.length} wrong (--seed ${seed})`)
process.exitCode = wrong.length > 0 || totals.fired === 0 ? 1 : 0
