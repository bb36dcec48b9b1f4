// proof: kills of a daemon that fires jobs
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { typescript } from '../../../harness/run-typescript.js'
import { until } from '../../../harness/until.js'
import { bench, START } from './bench.js'
import { completed } from './fake-sessions.js'

const HOUR = 3_600_000
/** `npm run prove:models` has more. */
const KILLS = Number(process.env.KILLS ?? 2)
const program = fileURLToPath(new URL('killed-daemon.ts', import.meta.url))

test('repeated kill -9 between claim and dispatch: no run is dispatched twice, no occurrence is lost', async () => {
  const home = await temporaryFolder('killed')
  const ledger = path.join(await temporaryFolder('killed-ledger'), 'ledger')
  await writeFile(ledger, '')
  const lines = async (word: string) =>
    (await readFile(ledger, 'utf8'))
      .split('\n')
      .flatMap(line => (line.startsWith(`${word} `) ? [line.split(' ')[1]] : []))
  const now = async () => Number([...(await lines('ready')), ...(await lines('time'))].at(-1) ?? START)
  for (let kill = 1; kill <= KILLS; kill++) {
    const at = Math.max(await now(), START)
    const child = spawn(process.execPath, [...typescript, program, home, String(at), ledger], { stdio: 'inherit' })
    const exited = once(child, 'exit')
    while ((await lines('ready')).length < kill) {
      assert.is(child.exitCode, null, 'the daemon ended by itself')
      await sleep(5)
    }
    const before = (await lines('time')).length
    await until(async () => (await lines('time')).length >= before + 2, 'two lines of the ledger')
    await sleep(Math.random() * 40)
    child.kill('SIGKILL')
    await exited
  }
  const dispatched = await lines('dispatched')
  assert.is(new Set(dispatched).size, dispatched.length, 'a run was dispatched twice')

  const b = await bench({ home, clock: new VirtualClock(await now()), answer: () => completed })
  const history = async () => (await b.request('GET', '/api/automation/runs?limit=1000')).body.runs
  const runs = await b.until(async () => {
    const seen = await history()
    return seen.every((run: { ended_at: string | null }) => run.ended_at) && seen
  }, 'what was left has ended')
  const left = runs.filter((run: { error?: string }) => /^(?:daemon_restarted|agent_crashed): /.test(run.error ?? ''))
  for (const run of left) assert.is(run.status, 'failed')
  assert.ok(left.length > 0, 'no kill met a run that was going on')
  for (let n = 0; n < 10; n++) {
    const own: { scheduled_at: string; metadata?: { missed_since?: string } }[] = runs.filter(
      (run: { job_id: string }) => run.job_id === `job${n}`,
    )
    const covered = new Set<number>()
    for (const { scheduled_at: end, metadata } of own) {
      const last = Date.parse(end)
      for (let hour = Date.parse(metadata?.missed_since ?? end); hour <= last; hour += HOUR) {
        assert.not(covered.has(hour), `job${n} at ${end}: twice`)
        covered.add(hour)
      }
    }
    const times = [...covered].sort((x, y) => x - y)
    const first = times[0] ?? Number.NaN
    assert.ok(times.length >= KILLS, `job${n}: ${times.length} instants`)
    assert.equal(
      times,
      times.map((_, i) => first + i * HOUR),
      `job${n}: an instant is lost`,
    )
  }
  await b.end()
  await rm(path.dirname(ledger), { recursive: true })
})

test.run()
