import { chmod, readFile, rm } from 'node:fs/promises'
import http, { type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Fault, KernelErrors } from '../contract/errors.js'
import type { ListenerInfo } from '../contract/host-view.js'
import type { Door } from '../contract/route.js'
import { errorBody } from './fault-reply.js'
import { MAX_FIELDS } from './guards.js'

/** Milliseconds and bytes that a request may take to arrive. */
export const LIMITS = {
  headersTimeout: 10_000,
  requestTimeout: 120_000,
  connectionsCheckingInterval: 2000,
  keepAliveTimeout: 5000,
  maxHeaderSize: 16 * 1024,
} as const

export interface Limits extends Readonly<Record<keyof typeof LIMITS, number>> {
  /** More are closed at once; told when it begins, and again only after half of them were gone. */
  readonly maxConnections: number
  readonly warn: (text: string) => void
}

/** How many descriptors this process may have; on systems that tell no one, what is usual there. */
export async function descriptorLimit(): Promise<number> {
  const text = await readFile('/proc/self/limits', 'utf8').catch(() => '')
  return Number(/^Max open files +(\d+)/m.exec(text)?.[1] ?? 10_240)
}

/** `head` is there when the request asks for a WebSocket: what came behind it. */
export type Handler = (door: Door, request: IncomingMessage, response: ServerResponse, head?: Buffer) => void

/** One `http.Server` of the kernel's own; what it serves is the current generation's. */
export class Listener {
  private constructor(
    readonly info: ListenerInfo,
    private readonly server: Server,
  ) {}

  /** Listens on a Unix socket, 0600; an old socket file is removed, for the caller holds the lock of the home. */
  static async socket(path: string, handler: Handler, limits: Limits): Promise<Listener> {
    await rm(path, { force: true })
    const server = makeServer('socket', handler, limits)
    await listening(server, { path })
    await chmod(path, 0o600)
    return new Listener({ door: 'socket', path }, server)
  }

  /** Listens on TCP; port 0 means any. `accepted` is told of each connection first. Throws `http_port_in_use`. */
  static async tcp(
    host: string,
    port: number,
    handler: Handler,
    limits: Limits,
    accepted: (socket: Socket) => void = () => {},
  ): Promise<Listener> {
    const server = makeServer('tcp', handler, limits).on('connection', accepted)
    try {
      // 'localhost' could be ::1 alone; the name stands for the loopback address everybody tries.
      await listening(server, { host: host === 'localhost' ? '127.0.0.1' : host, port })
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EADDRINUSE') {
        throw new Fault('http_port_in_use', 500, `the HTTP port ${port} on ${host} is taken by another program`, {
          next: 'set http.port in config.json to another port, 0 for any',
        })
      }
      throw new Fault('http_listen_failed', 500, `cannot listen on ${host}:${port}: ${(error as Error).message}`, {
        next: 'check http.host and http.port in config.json',
      })
    }
    const address = server.address()
    const bound = typeof address === 'object' && address ? address.port : port
    return new Listener({ door: 'tcp', host, port: bound }, server)
  }

  /** Takes no new connections, ends idle ones at once and the rest after `graceMs`. */
  async close(grace: Promise<void>): Promise<void> {
    const closed = new Promise<void>(resolve => this.server.close(() => resolve()))
    this.server.closeIdleConnections()
    await Promise.race([closed, grace])
    this.server.closeAllConnections()
    for (const socket of upgraded.get(this.server) ?? []) socket.destroy()
    await closed
  }
}

function makeServer(door: Door, handler: Handler, limits: Limits): Server {
  // Node would refuse a request without Host in its own words; over TCP the guard does it in ours.
  const server = http.createServer({ ...limits, requireHostHeader: false }, (request, response) => {
    answering.set(request.socket, response)
    handler(door, request, response)
  })
  // One more than is taken, so that a request with too many fields is seen to have them.
  server.maxHeadersCount = MAX_FIELDS + 1
  boundConnections(server, door, limits)
  server.on('upgrade', (request, _socket, head) => {
    const isSocket = request.method === 'GET' && /^websocket$/i.test(request.headers.upgrade ?? '')
    const response = isSocket ? detached(server, request) : ignoreUpgrade(server, request, head)
    if (response) handler(door, request, response, head)
  })
  server.on('checkExpectation', (_request, response) => {
    const fault = KernelErrors.expectation_failed()
    response.writeHead(fault.status, { 'content-type': JSON_TYPE, connection: 'close' })
    response.end(JSON.stringify(errorBody(fault)))
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const response = answering.get(socket)
    // Into the middle of a reply no other one can be written.
    const midway = response?.headersSent === true && !response.writableFinished
    if (midway || !socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
    const fault = BAD_REQUESTS[error.code ?? '']?.() ?? KernelErrors.invalid_request('the request is not valid HTTP')
    const body = JSON.stringify(errorBody(fault))
    const head = `HTTP/1.1 ${fault.status} ${http.STATUS_CODES[fault.status]}\r\ncontent-type: ${JSON_TYPE}\r\n`
    socket.end(`${head}content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`)
  })
  return server
}

/** At the process's limit of descriptors nothing could be opened, and libuv would turn connections away without a word. */
function boundConnections(server: Server, door: Door, { maxConnections, warn }: Limits): void {
  let open = 0
  let told = false
  server.maxConnections = maxConnections
  server.on('connection', socket => {
    open++
    socket.once('close', () => {
      if (--open <= maxConnections / 2) told = false
    })
  })
  server.on('drop', () => {
    if (!told) warn(`${maxConnections} connections are open on the ${door} listener; more are closed until some end`)
    told = true
  })
}

/** Sockets that a server handed over: it does not count them any more. */
const upgraded = new WeakMap<Server, Set<Duplex>>()

/** The response to a request whose socket the server has let go of; it ends the socket, unless it is taken from it. */
function detached(server: Server, request: IncomingMessage): ServerResponse | undefined {
  const { socket } = request
  const mine = upgraded.get(server) ?? new Set()
  upgraded.set(server, mine.add(socket))
  socket.once('close', () => mine.delete(socket))
  socket.on('error', () => socket.destroy())
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.once('finish', () => socket.destroySoon())
  try {
    response.assignSocket(socket)
    // Until its channel is open nobody else would read, and so notice that the peer is gone.
    socket.resume().once('end', () => response.socket?.destroy())
    return response
  } catch {
    // Sent behind a request that has no answer yet: no peer does that, and two answers could not be told apart.
    socket.destroy()
    return undefined
  }
}

/** An upgrade that is not offered is ignored, as HTTP has it: the request comes in again without asking for one. */
function ignoreUpgrade(server: Server, request: IncomingMessage, head: Buffer): undefined {
  const { method, url, httpVersion, rawHeaders, socket } = request
  const lines = [`${method} ${url} HTTP/${httpVersion}`]
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (rawHeaders[i]?.toLowerCase() !== 'upgrade') lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`)
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]))
  server.emit('connection', socket)
}

const JSON_TYPE = 'application/json; charset=utf-8'
const answering = new WeakMap<Duplex, ServerResponse>()

/** What Node's parser refuses, by the code of its error; the rest is no HTTP. */
const BAD_REQUESTS: Readonly<Record<string, () => Fault>> = {
  HPE_HEADER_OVERFLOW: KernelErrors.headers_too_large,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: KernelErrors.payload_too_large,
  ERR_HTTP_REQUEST_TIMEOUT: KernelErrors.request_timeout,
}

function listening(server: Server, options: { path: string } | { host: string; port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(options, () => {
      server.off('error', reject)
      resolve()
    })
  })
}
