import { spawn } from 'node:child_process'
import path from 'node:path'
import type { Context } from './context.js'
import { answers, makeHome, startDaemon } from './daemon.js'
import { runLoad } from './load-run.js'
import { inTurn, median, ms, pause, perSecond, ratioOf } from './measure.js'
import type { Row } from './report.js'

/** A new record each time it is sent. */
export const BODY = JSON.stringify({
  scope: { kind: 'global' },
  spec: { note: '#', text: 'x'.repeat(200) },
  expected_version: 0,
})

/** Durable PUTs over the socket beside a bare fastify that echoes; server and load generator are processes of their own. */
export async function benchPut(context: Context): Promise<void> {
  const { program, temp, quick, report } = context
  const home = makeHome(temp, 'put')
  const daemon = await startDaemon(context, home, { gaps: true })
  const echoSocket = path.join(temp, 'echo.sock')
  const echo = spawn(process.execPath, [program('echo'), echoSocket], { stdio: ['ignore', 'ignore', 'inherit'] })
  while (!(await answers(echoSocket, '/'))) await pause(20)
  const [rounds, seconds] = quick ? [1, 0.6] : [5, 1.2]
  const load = (socket: string, url: string, clients: number) =>
    runLoad(program('load'), { socket, method: 'PUT', url, clients, seconds, body: BODY })
  const rows: Row[] = []
  let gap = 0
  for (const clients of [1, 16, 64]) {
    const put = async () => {
      await daemon.longestGap()
      const result = await load(home.socket, '/api/resources/bench.note/#', clients)
      return { ...result, gap: await daemon.longestGap() }
    }
    const bare = async () => ({ ...(await load(echoSocket, '/echo/#', clients)), gap: 0 })
    const [ours = [], base = []] = (await inTurn(rounds + 1, [put, bare])).map(results => results.slice(1))
    gap = Math.max(gap, ...ours.map(one => one.gap))
    const textOf = (results: typeof ours) =>
      `${perSecond(median(results.map(r => r.rate)))} p50 ${ms(median(results.map(r => r.p50)))}`
    const [a, b] = [ours, base].map(results => results.map(r => r.rate)) as [number[], number[]]
    const ratio = ratioOf(a, b)
    rows.push({
      what: `durable PUT, ${clients} client${clients > 1 ? 's' : ''}`,
      ours: textOf(ours),
      baseline: `bare echo: ${textOf(base)}`,
      ratio,
      ...(clients === 64 && { value: ratio, target: { atLeast: 0.3 } }),
    })
  }
  rows.push({ what: "longest gap of the daemon's loop", ours: ms(gap), value: gap, target: { atMost: 50, unit: 'ms' } })
  echo.kill()
  await daemon.stop()
  report.section('Requests', rows)
}
