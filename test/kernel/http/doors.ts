import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import net from 'node:net'
import path from 'node:path'
import { createKernel, type Kernel, type LogLine } from '../../../kernel/index.js'
import type { Clock, Plugin } from '../../../kernel/plugin.js'
import { temporaryFolder, withBase } from '../../harness/kernel.js'
import { until as patient } from '../../harness/until.js'

export interface Answer {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into replies of any shape
  readonly body: any
}

export interface Ask {
  readonly method?: string
  readonly headers?: http.OutgoingHttpHeaders
  /** An object is sent as JSON, a string as it is. */
  readonly body?: unknown
  readonly agent?: http.Agent
  readonly signal?: AbortSignal
}

/** A kernel on a temporary home with both doors open. */
export interface Doors {
  readonly kernel: Kernel
  readonly home: string
  readonly log: readonly LogLine[]
  readonly socketPath: string
  readonly port: number
  readonly where: { readonly socket: { socketPath: string }; readonly tcp: { host: string; port: number } }
  close(): Promise<void>
}

export type DoorName = 'socket' | 'tcp'
export const DOORS: readonly DoorName[] = ['socket', 'tcp']

/** Without a plugin that authenticates, callers of the own user are known over TCP: tests of what lies behind need no token. */
export async function openDoors(
  plugins: readonly Plugin[],
  clock?: Clock,
  http = {},
  checkReplies = true,
): Promise<Doors> {
  const home = await temporaryFolder('doors')
  await writeFile(path.join(home, 'config.json'), JSON.stringify({ http: { port: 0, trust_own_user: true, ...http } }))
  const log: LogLine[] = []
  const kernel = await createKernel({
    home,
    plugins: withBase(plugins),
    listen: ['socket', 'tcp'],
    log: line => log.push(line),
    checkReplies,
    ...(clock ? { clock } : {}),
  })
  const tcp = kernel.host.listeners().find(listener => listener.door === 'tcp')
  const port = tcp?.door === 'tcp' ? tcp.port : 0
  const socketPath = path.join(home, 'daemon.sock')
  return {
    kernel,
    home,
    log,
    socketPath,
    port,
    where: { socket: { socketPath }, tcp: { host: '127.0.0.1', port } },
    async close() {
      const errors = await kernel.close()
      await rm(home, { recursive: true, force: true })
      if (errors.length > 0) throw new AggregateError(errors)
    },
  }
}

/** One request over a real socket. */
export function ask(where: object, url: string, { method = 'GET', body, headers, agent, signal }: Ask = {}) {
  return new Promise<Answer>((resolve, reject) => {
    const text = body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    const request = http.request({
      ...where,
      method,
      path: url,
      headers: { ...type, ...headers },
      agent: agent ?? false,
      ...(signal ? { signal } : {}),
    })
    request.on('error', (error: NodeJS.ErrnoException) => {
      // The server may close an idle connection in the moment in which it is used again; every client repeats such a GET.
      const isIdleClosed = request.reusedSocket && error.code === 'ECONNRESET' && method === 'GET'
      if (!isIdleClosed) return reject(error)
      ask(where, url, { method, ...(headers && { headers }), ...(agent && { agent }) }).then(resolve, reject)
    })
    request.on('response', response => {
      let all = ''
      response.setEncoding('utf8')
      response.on('data', chunk => {
        all += chunk
      })
      response.on('error', reject)
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text: all, body: json(all) }),
      )
    })
    request.end(text)
  })
}

/** Sends bytes as they are and gives back everything that comes until the other side ends. */
export async function send(where: object, bytes: string | Buffer): Promise<string> {
  const socket = net.connect('socketPath' in where ? { path: String(where.socketPath) } : (where as net.NetConnectOpts))
  let all = ''
  socket.setEncoding('utf8')
  socket.on('data', chunk => {
    all += chunk
  })
  socket.on('error', () => {})
  socket.write(bytes)
  await once(socket, 'close')
  return all
}

/** Status, headers and JSON body of the first reply in raw bytes. */
export function parseReply(text: string): { status: number; head: string; body: unknown } {
  const [head = '', ...rest] = text.split('\r\n\r\n')
  const body = rest.join('\r\n\r\n')
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1] ?? 0), head: head.toLowerCase(), body: json(body) }
}

export const pause = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms))

/** Resolves when it holds. */
export const until = (holds: () => unknown) => patient(holds, String(holds))

function json(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
