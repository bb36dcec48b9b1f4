// Sends signed deliveries as fast as they are taken, forked.
import { createHmac } from 'node:crypto'
import http from 'node:http'
import { answer } from './child.js'

export interface Deliveries {
  readonly port: number
  /** In turn, so that none gets more than it takes. */
  readonly paths: readonly string[]
  readonly secret: string
  readonly clients: number
  readonly seconds: number
  /** One of them each has to have. */
  readonly statuses: readonly number[]
  /** Each path is sent the same one again and again, signed at this Unix time. */
  readonly repeatedAt?: number
  /** Sends one to each path and ends. */
  readonly once?: boolean
}

let sent = 0

const handlers = {
  async run({ port, paths, secret, clients, seconds, statuses, repeatedAt, once }: Deliveries) {
    const agent = new http.Agent({ keepAlive: true, maxSockets: clients })
    const stamp = repeatedAt ?? Math.floor(Date.now() / 1000)
    const first = sent
    const one = () => {
      const n = repeatedAt === undefined ? sent++ : sent++ % paths.length
      const body = JSON.stringify({
        ref: 'refs/heads/main',
        n,
        commits: [{ id: 'x'.repeat(40), message: 'y'.repeat(100) }],
      })
      const signature = `sha256=${createHmac('sha256', secret).update(`${stamp}.${body}`).digest('hex')}`
      const headers = {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'x-service-webhook-timestamp': String(stamp),
        'x-service-webhook-signature': signature,
      }
      const path = paths[n % paths.length] as string
      return new Promise<void>((resolve, reject) => {
        const call = http.request({ host: '127.0.0.1', port, method: 'POST', path, agent, headers }, response => {
          let text = ''
          response.on('data', chunk => {
            text += chunk
          })
          response.on('end', () =>
            statuses.includes(response.statusCode ?? 0)
              ? resolve()
              : reject(new Error(`${response.statusCode}: ${text}`)),
          )
        })
        call.once('error', reject)
        call.end(body)
      })
    }
    const began = performance.now()
    let count = 0
    await Promise.all(
      Array.from({ length: clients }, async () => {
        const goesOn = () => (once ? sent - first < paths.length : performance.now() - began < seconds * 1000)
        for (; goesOn(); count++) await one()
      }),
    )
    agent.destroy()
    return { count, rate: count / ((performance.now() - began) / 1000) }
  },
}
export type WebhookLoad = typeof handlers
answer(handlers)
