import { spawn } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import type { Context } from './context.js'
import { answers } from './daemon.js'
import { runLoad } from './load-run.js'
import { inTurn, median, ms, pause, perSecond, ratioOf } from './measure.js'
import type { Row } from './report.js'

/** A request that is measured. */
export interface Measured {
  readonly what: string
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly body?: string
  /** Requests at once; default 4. */
  readonly clients?: number
  /** Milliseconds that the slowest of a hundred may take. */
  readonly p99?: number
}

/** A request to the daemon, beside a bare fastify with the same reply. */
export async function compareWithBare({ program, temp, quick }: Context, socket: string, one: Measured): Promise<Row> {
  const { method, url, body = '', clients = 4, p99 } = one
  const file = path.join(temp, 'body.json')
  writeFileSync(file, await call(socket, method, url, body))
  const bareSocket = path.join(temp, 'body.sock')
  rmSync(bareSocket, { force: true })
  const bare = spawn(process.execPath, [program('body'), bareSocket, file], { stdio: ['ignore', 'ignore', 'inherit'] })
  const exited = new Promise(resolve => bare.once('exit', resolve))
  while (!(await answers(bareSocket, '/'))) await pause(20)
  const [rounds, seconds] = quick ? [1, 0.5] : [5, 1]
  const load = (at: string) => () => runLoad(program('load'), { socket: at, method, url, clients, seconds, body })
  const [ours = [], base = []] = (await inTurn(rounds + 1, [load(socket), load(bareSocket)])).map(all => all.slice(1))
  bare.kill()
  await exited
  const slow = (results: typeof ours) => median(results.map(r => r.p99))
  const textOf = (results: typeof ours) =>
    `${perSecond(median(results.map(r => r.rate)))} p50 ${ms(median(results.map(r => r.p50)))} p99 ${ms(slow(results))}`
  const [a, b] = [ours, base].map(results => results.map(r => r.rate)) as [number[], number[]]
  const ratio = ratioOf(a, b)
  const target = p99 === undefined ? {} : { value: slow(ours), target: { atMost: p99, unit: 'ms at p99' } }
  return { what: one.what, ours: textOf(ours), baseline: `bare: ${textOf(base)}`, ratio, ...target }
}

/** The text of a reply; throws for an error. */
export function call(socketPath: string, method: string, url: string, body = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = body === '' ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const request = http.request({ socketPath, method, path: url, headers }, response => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', chunk => {
        text += chunk
      })
      response.once('end', () =>
        (response.statusCode ?? 500) < 300 ? resolve(text) : reject(new Error(`${method} ${url}: ${text}`)),
      )
    })
    request.once('error', reject)
    request.end(body)
  })
}
