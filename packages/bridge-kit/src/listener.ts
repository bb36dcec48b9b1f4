import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import { clip } from './text.js'
import { type Host, type InboundEvent, IngestRefused, type Instance, InstanceProblem } from './types.js'

/** A request to a webhook. */
export interface WebhookRequest {
  readonly method: string
  /** One value per header; names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly query: URLSearchParams
  readonly body: Buffer
}

/** The response; without `body` and `text` it is empty. */
export interface WebhookReply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** Sent verbatim instead of a JSON body. */
  readonly text?: string
}

export type WebhookHandler = (request: WebhookRequest) => Promise<WebhookReply>

/** The local address and path of an instance, and its public URL. */
export interface ListenConfig {
  readonly host: string
  readonly port: number
  readonly path: string
  readonly publicUrl: string | undefined
}

const DEFAULT_MOST_BYTES = 1024 * 1024
/** Time limit of a request; slower clients are cut off. */
const REQUEST_MS = 15_000
/** Concurrent requests per listener. */
const AT_ONCE = 64

/**
 * Reads `listen_addr`, `path` and `public_url` of `provider_config`. Only loopback addresses are allowed: a proxy on this machine
 * has to terminate TLS.
 * @throws InstanceProblem If a setting is invalid
 */
export function listenConfigOf({ config }: Instance): ListenConfig {
  const { listen_addr: address, path, public_url: publicUrl } = config
  const [, host = '', port = ''] =
    /^(localhost|127(?:\.\d{1,3}){3}|\[::1\]):(\d{1,5})$/.exec(typeof address === 'string' ? address : '') ?? []
  if (host === '' || Number(port) > 65535 || (isIP(host) === 0 && !/^(?:localhost|\[::1\])$/.test(host)))
    throw wrong('listen_addr', address, 'a loopback address with a port, 127.0.0.1:8787 for example')
  if (typeof path !== 'string' || !/^\/[A-Za-z0-9._~/-]{0,200}$/.test(path))
    throw wrong('path', path, 'a path that begins with /')
  if (publicUrl !== undefined && !(typeof publicUrl === 'string' && /^https?:\/\/[^\s]{1,500}$/.test(publicUrl)))
    throw wrong('public_url', publicUrl, 'a URL')
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port), path, publicUrl }
}

const wrong = (key: string, value: unknown, wanted: string) =>
  new InstanceProblem({
    status: 'error',
    reason: 'tenant_config_invalid',
    message: `provider_config.${key}: ${clip(JSON.stringify(value) ?? 'absent', 80)} is not ${wanted}`,
  })

/** How long a request waits for the daemon; platforms give up after ten seconds. */
const WAIT_MS = 9000
const RETRY_SECONDS = 5

const LATER: WebhookReply = {
  status: 503,
  headers: { 'retry-after': String(RETRY_SECONDS) },
  body: { error: 'not accepted now; send it again with the same id' },
}

/** Hands an event to the daemon. Responds 200 once the event is durable, 503 if the sender has to repeat it. */
export function taken(host: Host, event: InboundEvent, waitMs = WAIT_MS): Promise<WebhookReply> {
  return durable(host.ingest(event), waitMs)
}

/** The response to a request whose work is handed to the daemon; see {@link taken}. */
export async function durable(work: Promise<unknown>, waitMs = WAIT_MS): Promise<WebhookReply> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>(resolve => {
    timer = setTimeout(() => resolve(undefined), waitMs)
  })
  try {
    // A repeated request shares the pending work.
    const result = await Promise.race([work, late])
    return result === undefined ? LATER : { status: 200, body: result }
  } catch (error) {
    if (!(error instanceof IngestRefused)) throw error
    const invalid = error.code === 'bridge_event_invalid' || error.code === 'invalid_params'
    return invalid ? { status: 400, body: { error: error.message } } : LATER
  } finally {
    clearTimeout(timer)
  }
}

interface Shared {
  readonly server: Server
  readonly listening: Promise<void>
  readonly paths: Map<
    string,
    { readonly handler: WebhookHandler; readonly mostBytes: number; readonly methods: readonly string[] }
  >
}

/** Listeners by address: instances with different paths share one. */
const shared = new Map<string, Shared>()

/**
 * Listens for requests to one path; resolves once it does.
 * @throws InstanceProblem If the address or the path is in use
 */
export async function listen(
  { host, port, path }: ListenConfig,
  handler: WebhookHandler,
  mostBytes = DEFAULT_MOST_BYTES,
  methods: readonly string[] = ['POST'],
): Promise<{ readonly port: number; close(): Promise<void> }> {
  // Port 0 selects a new port each time, so it is never shared.
  const key = port === 0 ? `${host}:0:${path}:${Math.random()}` : `${host}:${port}`
  const entry = shared.get(key) ?? begin(host, port, key)
  if (entry.paths.has(path)) throw inUse(`${host}:${port}${path} belongs to another instance`)
  entry.paths.set(path, { handler, mostBytes, methods })
  const close = async () => {
    entry.paths.delete(path)
    if (entry.paths.size > 0 || shared.get(key) !== entry) return
    shared.delete(key)
    entry.server.closeAllConnections()
    await new Promise(resolve => entry.server.close(resolve))
  }
  try {
    await entry.listening
  } catch (error) {
    await close()
    throw inUse(`${host}:${port} cannot be listened on: ${(error as Error).message}`)
  }
  return { port: (entry.server.address() as { port: number }).port, close }
}

const inUse = (message: string) => new InstanceProblem({ status: 'error', reason: 'webhook_invalid', message })

function begin(host: string, port: number, key: string): Shared {
  const paths: Shared['paths'] = new Map()
  let running = 0
  const server = createServer((request, response) => {
    if (running >= AT_ONCE) return reply(response, { status: 503, headers: { 'retry-after': '1' } })
    running++
    void answer(request, response, paths).finally(() => running--)
  })
  server.requestTimeout = REQUEST_MS
  server.headersTimeout = REQUEST_MS
  server.maxHeadersCount = 200
  const listening = new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  const entry = { server, listening, paths }
  shared.set(key, entry)
  return entry
}

async function answer(request: IncomingMessage, response: ServerResponse, paths: Shared['paths']): Promise<void> {
  const { method = '', url = '', headers } = request
  const [path = '', query] = url.split('?', 2)
  const found = paths.get(path)
  if (!found) return reply(response, { status: 404 })
  if (!found.methods.includes(method))
    return reply(response, { status: 405, headers: { allow: found.methods.join(', ') } })
  try {
    const body = await bodyOf(request, found.mostBytes)
    if (body === undefined) return reply(response, { status: 413 })
    const single = Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value])
    const fields = new URLSearchParams(query)
    reply(response, await found.handler({ method, headers: Object.fromEntries(single), query: fields, body }))
  } catch {
    // Error details go to the handler's log, not to the sender.
    reply(response, { status: 500 })
  }
}

async function bodyOf(request: IncomingMessage, most: number): Promise<Buffer | undefined> {
  if (Number(request.headers['content-length'] ?? 0) > most) return undefined
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of request) {
    bytes += (part as Buffer).length
    if (bytes > most) return undefined
    parts.push(part as Buffer)
  }
  return Buffer.concat(parts)
}

function reply(response: ServerResponse, { status, headers = {}, body, text: plain }: WebhookReply): void {
  if (response.headersSent || response.destroyed) return
  const text = plain ?? (body === undefined ? '' : JSON.stringify(body))
  const kind = plain === undefined ? 'application/json' : 'text/plain; charset=utf-8'
  const type = text === '' ? {} : { 'content-type': kind, 'x-content-type-options': 'nosniff' }
  // The rest of an oversized body is not read, so the connection is closed.
  const close = status === 413 ? { connection: 'close' } : {}
  response.writeHead(status, { ...type, ...close, ...headers, 'content-length': Buffer.byteLength(text) }).end(text)
}
