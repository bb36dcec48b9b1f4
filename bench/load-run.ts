import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** What the load generator is told. */
export interface Load {
  readonly socket: string
  readonly method: string
  /** `#` becomes a running number. */
  readonly url: string
  readonly clients: number
  readonly seconds: number
  readonly body: string
}

/** Runs the load generator as a process of its own: requests a second, and the median in milliseconds. */
export async function runLoad(program: string, load: Load): Promise<{ p50: number; rate: number }> {
  const args = [program, load.socket, load.method, load.url, String(load.clients), String(load.seconds), load.body]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.on('data', chunk => {
    text += chunk
  })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`the load generator ended with ${code}`)
  const result = JSON.parse(text) as { requests: number; seconds: number; p50: number; p99: number }
  return { p50: result.p50, rate: result.requests / result.seconds }
}
