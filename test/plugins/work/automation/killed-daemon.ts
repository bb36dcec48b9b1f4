// A daemon that a test kills: node --import tsx killed-daemon.ts HOME START LEDGER. It lets an hour pass again and again;
// agents end, fail or go on by turns. Before a session is made its cause goes into the ledger, outside of the home.
import { appendFileSync } from 'node:fs'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { bench, hourly } from './bench.js'
import { completed, failed } from './fake-sessions.js'

const HOUR = 3_600_000
const [home = '', start = '', ledger = ''] = process.argv.slice(2)
const write = (...words: readonly (string | number)[]) => appendFileSync(ledger, `${words.join(' ')}\n`)
const clock = new VirtualClock(Number(start))
let turn = 0
const b = await bench({
  home,
  clock,
  config: { automation: { max_concurrent_jobs: 1000, default_fire_limit: { max: 1000, window: '1h' } } },
  answer: () => [completed, completed, failed('no'), completed, undefined][turn++ % 5],
  onCreate: ({ cause }) => write('dispatched', cause ?? ''),
})
for (let n = 0; n < 10; n++) {
  const policy = n % 2 === 0 ? 'replay' : 'coalesce'
  const schedule = { mode: 'every', interval: '1h', catch_up_policy: policy }
  if (!(await b.job(`job${n}`))) await b.put(`job${n}`, hourly({ name: `n${n}`, schedule }))
}
write('ready', clock.now())
for (;;) {
  await clock.advance(HOUR)
  write('time', clock.now())
  await new Promise(resolve => setTimeout(resolve, 20))
}
