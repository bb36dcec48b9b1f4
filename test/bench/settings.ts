import { once } from 'node:events'
import http from 'node:http'
import type { Context } from './context.js'
import { makeHome, startDaemon } from './daemon.js'
import { ms, pairs } from './measure.js'
import { BODY } from './put.js'

/** A change of a live setting until it is read back, beside a durable PUT of a record that is read back. */
export async function benchSettings(context: Context): Promise<void> {
  const home = makeHome(context.temp, 'settings')
  const daemon = await startDaemon(context, home)
  const agent = new http.Agent({ keepAlive: true })
  let n = 0
  const ask = async (method: string, path: string, body = ''): Promise<string> => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const request = http.request({ socketPath: home.socket, agent, method, path, headers }).end(body)
    const [response] = (await once(request, 'response')) as [http.IncomingMessage]
    const text = (await response.setEncoding('utf8').toArray()).join('')
    if (response.statusCode !== 200 && response.statusCode !== 201)
      throw new Error(`${method} ${path}: ${response.statusCode} ${text}`)
    return text
  }
  const timed = async (work: () => Promise<unknown>): Promise<number> => {
    const began = performance.now()
    await work()
    return performance.now() - began
  }
  const patch = () =>
    timed(async () => {
      const limit = 1 + (++n % 100)
      const change = JSON.stringify({ config: { max_concurrent_jobs: limit } })
      await ask('PATCH', '/api/settings/automation', change)
      while (JSON.parse(await ask('GET', '/api/settings/automation')).config.max_concurrent_jobs !== limit);
    })
  const put = () =>
    timed(async () => {
      const path = `/api/resources/bench.note/settings-${++n}`
      await ask('PUT', path, BODY)
      await ask('GET', path)
    })
  for (let i = 0; i < 10; i++) await Promise.all([patch(), put()])
  const { a, b, ratio } = await pairs(context.quick ? 30 : 200, patch, put)
  agent.destroy()
  await daemon.stop()
  context.report.section('Settings', [
    {
      what: 'PATCH of a live setting until it is in force',
      ours: ms(a),
      baseline: `durable PUT of a record, read back: ${ms(b)}`,
      ratio,
    },
  ])
}
