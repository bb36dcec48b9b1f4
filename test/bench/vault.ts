import { once } from 'node:events'
import http from 'node:http'
import type { Context } from './context.js'
import { answers, makeHome, startDaemon } from './daemon.js'
import { median, ms, pairs } from './measure.js'

const SECRETS = 10_000
const AT_ONCE = 64

/** Starts with many secrets, whose values are hidden from then on, beside starts with none. */
export async function benchVault(context: Context): Promise<void> {
  const full = makeHome(context.temp, 'vault-full')
  const empty = makeHome(context.temp, 'vault-empty')
  for (const home of [full, empty]) {
    const daemon = await startDaemon(context, home)
    if (home === full) await fill(home.socket)
    await daemon.stop()
    // The first start after it empties the log of the database.
    await (await startDaemon(context, home)).stop()
  }
  const rounds = context.quick ? 3 : 15
  const hidden = { full: [] as number[], empty: [] as number[] }
  const start = (home: typeof full, took: number[]) => async () => {
    const began = performance.now()
    const daemon = await startDaemon(context, home)
    const ready = performance.now() - began
    // It is answered when all values are hidden.
    await answers(home.socket, '/api/vault/secrets?prefix=none')
    took.push(performance.now() - began)
    await daemon.stop()
    return ready
  }
  const { a, b, ratio } = await pairs(rounds, start(full, hidden.full), start(empty, hidden.empty))
  const [all, none] = [median(hidden.full), median(hidden.empty)]
  context.report.section(`A vault of ${SECRETS} secrets`, [
    {
      what: 'cold start until the API answers',
      ours: ms(a),
      baseline: `no secrets: ${ms(b)}`,
      ratio,
      value: a - b,
      target: { atMost: 100, unit: 'ms' },
    },
    {
      what: 'cold start until all values are hidden',
      ours: ms(all),
      baseline: `no secrets: ${ms(none)}`,
      ratio: all / none,
    },
  ])
}

async function fill(socketPath: string): Promise<void> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: AT_ONCE })
  let next = 0
  const lane = async () => {
    while (next < SECRETS) await put(socketPath, agent, next++)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane))
  agent.destroy()
}

async function put(socketPath: string, agent: http.Agent, at: number): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const request = http.request({ socketPath, agent, method: 'PUT', path: '/api/vault/secrets', headers })
  const secret_value = `value-${at}-${'0123456789abcdef'.repeat(2)}`
  request.end(JSON.stringify({ ref: `vault:mcp/bench/n${at}`, secret_value }))
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  response.resume()
  await once(response, 'end')
  if (response.statusCode !== 200) throw new Error(`PUT of secret ${at}: ${response.statusCode}`)
}
