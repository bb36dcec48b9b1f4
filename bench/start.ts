import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { Context } from './context.js'
import { makeHome, startDaemon } from './daemon.js'
import { mib, ms, pairs, pause, timed } from './measure.js'
import type { Row } from './report.js'

const nothing = [process.execPath, '-e', '0']
const rss = (pid: number) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024

/** Starting the daemon, a client command, and the memory of an idle daemon, beside a node that does nothing. */
export async function benchStart(context: Context): Promise<void> {
  const home = makeHome(context.temp, 'start')
  const rounds = context.quick ? 3 : 15
  // Creates the catalog, warms the file cache.
  await (await startDaemon(context, home)).stop()
  const cold = await pairs(
    rounds,
    async () => {
      const began = performance.now()
      const daemon = await startDaemon(context, home)
      const took = performance.now() - began
      await daemon.stop()
      return took
    },
    () => timed(nothing),
  )
  const daemon = await startDaemon(context, home)
  const svc = path.join(context.root, 'dist/bin/svc')
  const status = await pairs(
    rounds,
    () => timed([process.execPath, svc, 'status'], home.env),
    () => timed(nothing),
  )
  const row = (what: string, { a, b, ratio }: typeof cold): Row => ({
    what,
    ours: ms(a),
    baseline: `node -e 0: ${ms(b)}`,
    ratio,
  })
  const rows = [row('cold start until the API answers', cold), row('svc status', status)]
  // Where memory is read from the process file system.
  if (process.platform === 'linux') rows.push(await idleMemory(daemon.pid))
  await daemon.stop()
  context.report.section('Start and memory', rows)
}

async function idleMemory(pid: number): Promise<Row> {
  const idle = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], { stdio: 'ignore' })
  await pause(3000)
  const [ours, bare] = [rss(pid), rss(idle.pid as number)]
  idle.kill()
  return { what: 'idle RSS', ours: mib(ours), baseline: `idle node: ${mib(bare)}`, ratio: ours / bare }
}
