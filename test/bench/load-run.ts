import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** What the load generator is told. */
export interface Load {
  readonly socket?: string
  /** Instead of the socket: of 127.0.0.1. */
  readonly port?: number
  /** Sent as a bearer token; empty or absent: none. */
  readonly token?: string
  readonly method: string
  /** `#` becomes a running number. */
  readonly url: string
  readonly clients: number
  readonly seconds: number
  readonly body: string
  /** Opens a connection for each request. */
  readonly fresh?: boolean
}

/** Requests a second; times in milliseconds. */
export interface LoadResult {
  readonly p50: number
  readonly p99: number
  readonly rate: number
  readonly requests: number
}

/** Runs the load generator as a process of its own. */
export async function runLoad(program: string, load: Load): Promise<LoadResult> {
  const { socket, port, token = '', method, url, clients, seconds, body, fresh } = load
  const numbers = [clients, seconds].map(String)
  const args = [program, socket ?? String(port), method, url, ...numbers, body, ...(fresh ? ['fresh'] : [])]
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, BENCH_TOKEN: token },
  })
  let text = ''
  child.stdout.on('data', chunk => {
    text += chunk
  })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`the load generator ended with ${code}`)
  const result = JSON.parse(text) as { requests: number; seconds: number; p50: number; p99: number }
  const { p50, p99, requests } = result
  return { p50, p99, requests, rate: requests / result.seconds }
}
