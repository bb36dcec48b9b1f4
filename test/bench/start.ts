import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { Context } from './context.js'
import { makeHome, startDaemon } from './daemon.js'
import { mib, ms, pairs, pause, timed } from './measure.js'
import type { Row } from './report.js'

const nothing = [process.execPath, '-e', '0']
/** Bytes of memory that a process has. */
export const rss = (pid: number) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024

/** Ratio to a node that does nothing, which is faster in later releases. */
const mostStatus = Number.parseInt(process.versions.node, 10) < 24 ? 1.8 : 2.5

/** Starting the daemon, a client command, and what an idle daemon takes, beside a node that does nothing. */
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
      const elapsed = performance.now() - began
      await daemon.stop()
      return elapsed
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
  const row = (what: string, { a, b, ratio }: typeof cold, atMost: number): Row => ({
    what,
    ours: ms(a),
    baseline: `node -e 0: ${ms(b)}`,
    ratio,
    value: ratio,
    target: { atMost },
  })
  const rows = [row('cold start until the API answers', cold, 3), row('svc status', status, mostStatus)]
  // Where both are read from the process file system.
  if (process.platform === 'linux') rows.push(...(await idle(daemon.pid, context.quick ? 5 : 20)))
  await daemon.stop()
  context.report.section('Start and memory', rows)
}

/** Memory and share of a processor of the daemon, beside a node that only waits. */
async function idle(daemon: number, seconds: number): Promise<Row[]> {
  const bare = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], { stdio: 'ignore' })
  const pids = [daemon, bare.pid as number] as const
  // V8 cleans up once, some ten seconds after a start.
  await pause(15_000)
  const before = pids.map(cpuMs)
  await pause(seconds * 1000)
  const [ours = 0, base = 0] = pids.map((pid, i) => (cpuMs(pid) - (before[i] as number)) / (seconds * 10))
  const [memory, bareMemory] = pids.map(rss) as [number, number]
  bare.kill()
  const percent = (share: number) => `${share.toFixed(2)} %`
  return [
    {
      what: 'idle RSS',
      ours: mib(memory),
      baseline: `idle node: ${mib(bareMemory)}`,
      ratio: memory / bareMemory,
      value: memory / 2 ** 20,
      target: { atMost: 110, unit: 'MiB' },
    },
    {
      what: `idle processor time over ${seconds} s`,
      ours: percent(ours),
      baseline: `idle node: ${percent(base)}`,
      value: ours,
      target: { atMost: 0.2, unit: '%' },
    },
  ]
}

/** Milliseconds of processor time of all threads; nanoseconds are counted, `stat` has only ticks of 10 ms. */
export function cpuMs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`)
  const of = (thread: string) => Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0])
  return threads.reduce((sum, thread) => sum + of(thread), 0) / 1e6
}
