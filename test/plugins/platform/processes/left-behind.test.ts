import { spawn as spawnChild } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { inspectProcess } from '../../../../plugins/platform/processes/inspect.js'
import { until } from '../../../harness/until.js'
import {
  cleanUp,
  deaf,
  env,
  homeId,
  isRunning,
  memoryTable,
  pidsFrom,
  quick,
  remember,
  scratch,
  shell,
  spawner,
} from './harness.js'

const root = fileURLToPath(new URL('../../../..', import.meta.url))

test.after(cleanUp)

/** A daemon in small: starts what it is told through a spawner, writes its rows to a file, and waits to be killed. */
const daemonSource = `
import { writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { systemClock } from './kernel/clock.ts'
import { createSpawner } from './plugins/platform/processes/spawner.ts'
const [homeId, cwd, rowsFile, ...scripts] = process.argv.slice(2)
let rows = []
const write = () => writeFileSync(rowsFile, JSON.stringify(rows))
const table = {
  add: async row => { rows.push(row); write() },
  remove: async (pid, startTime) => { rows = rows.filter(r => r.pid !== pid || r.startTime !== startTime); write() },
  list: () => rows,
}
const spawner = createSpawner({ homeId, table, clock: systemClock(), durable: async () => {} })
if (scripts.length === 0) {
  const { ended } = await spawner.reap()
  console.log(JSON.stringify(ended.map(({ pid }) => pid)))
}
for (const script of scripts) {
  const env = { PATH: process.env.PATH, SVC_TEST_MARK: process.env.SVC_TEST_MARK ?? 'none' }
  const handle = await spawner.spawn({ owner: 'p', label: 'l', argv: ['/bin/sh', '-c', script], cwd, env, stdio: 'pipe' })
  console.log(handle.pid)
  for await (const line of createInterface(handle.stdout)) {
    if (line === 'end') break
    console.log(line)
  }
}
if (scripts.length > 0) {
  console.log('up')
  process.stdin.resume()
}
`
const daemon = join(scratch, 'daemon.mjs')

test.before(async () => {
  await build({
    stdin: { contents: daemonSource, resolveDir: root },
    outfile: daemon,
    bundle: true,
    mainFields: ['module', 'main'],
    platform: 'node',
    format: 'esm',
    logLevel: 'error',
  })
})

test('leftovers of a killed daemon are killed by the next: groups, leaderless groups, processes outside their group', async () => {
  const id = `${homeId}-killed`
  const rowsFile = join(scratch, 'rows.json')
  const scripts = [
    `${deaf.replace('while', 'echo end; while')}`,
    `trap '' HUP; setsid sh -c "trap '' TERM; sleep 1000 & echo \\$!; echo \\$\\$; echo end; wait" & wait`,
    'sleep 1000 & echo $!; setsid sleep 1000 & echo $!; echo end',
  ]
  const first = spawnChild(process.execPath, [daemon, id, scratch, rowsFile, ...scripts], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const pids = await pidsFrom(first.stdout)
  assert.is(pids.length, 9)
  const gone = pids[6]!
  first.kill('SIGKILL')
  await once(first, 'exit')
  const left = pids.filter(pid => pid !== gone)
  // It ends by itself once it has said so, which takes a moment on a busy machine.
  await until(() => !isRunning(gone), 'the end of the process')
  assert.equal(
    left.map(isRunning),
    left.map(() => true),
  )

  const other = await spawner(memoryTable(), undefined, `${id}-other`).spawn(shell('sleep 1000'))
  const table = memoryTable(JSON.parse(readFileSync(rowsFile, 'utf8')))
  assert.is(table.list().length, 3)
  const second = spawner(table, undefined, id)
  const { ended, stale } = await second.reap()
  assert.equal(left.filter(isRunning), [])
  assert.equal(new Set(ended.map(({ pid }) => pid)), new Set(left))
  assert.equal(
    stale.map(({ pid }) => pid),
    [gone],
  )
  assert.equal(
    ended.filter(({ pid }) => pid === pids[1]).map(({ owner, label }) => [owner, label]),
    [['p', 'l']],
  )
  assert.equal(table.list(), [])
  assert.ok(other.alive)
  assert.equal(await second.reap(), { ended: [], stale: [], resisting: [] })
})

test('a reused pid is not touched, and its row is deleted', async () => {
  const victim = spawnChild('sleep', ['1000'], { detached: true, stdio: 'ignore' })
  remember(victim.pid!)
  const { startTime } = inspectProcess(victim.pid!, process.platform)!
  const rows = [`${startTime}1`, startTime.replace(/^[^:]*/, 'another-boot')].map(other => {
    return { pid: victim.pid!, startTime: other, group: victim.pid!, owner: 'p', label: 'l' }
  })
  const table = memoryTable(rows)
  assert.equal(await spawner(table).reap(), { ended: [], stale: rows, resisting: [] })
  assert.equal(table.list(), [])
  assert.ok(isRunning(victim.pid!))
  // The same row with the true start time ends it: it was the difference that saved it.
  const exact = memoryTable([{ ...rows[0]!, startTime }])
  assert.equal(
    (await spawner(exact).reap()).ended.map(({ pid }) => pid),
    [victim.pid],
  )
  assert.not(isRunning(victim.pid!))
})

test('a daemon started by its own process spares itself and its ancestors, not its siblings', async () => {
  const id = `${homeId}-nested`
  const script = 'sleep 1000 & echo $!; "$NODE" "$DAEMON" "$ID" . rows-nested.json; echo survived'
  const child = spawnChild('/bin/sh', ['-c', script], {
    cwd: scratch,
    env: { ...env, NODE: process.execPath, DAEMON: daemon, ID: id, SVC_HOME_ID: id },
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [sibling, ended, end] = (await text(child.stdout)).trim().split('\n')
  assert.is(end, 'survived')
  assert.equal(JSON.parse(ended!), [Number(sibling)])
})

test('processes started by this daemon are spared', async () => {
  const table = memoryTable()
  const one = spawner(table)
  const handle = await one.spawn(shell('sleep 1000 & echo $!; wait'))
  const [child] = await pidsFrom(handle.stdout, 1)
  assert.equal(await one.reap(), { ended: [], stale: [], resisting: [] })
  assert.ok(handle.alive && isRunning(child!))
  assert.is(table.list().length, 1)
  await handle.stop(quick)
})

test.run()
