import { once } from 'node:events'
import { chmod, lstat, rename, rm, stat } from 'node:fs/promises'
import http, { type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { Fault, KernelErrors } from '../contract/errors.js'
import type { Incoming } from '../contract/kernel-hooks.js'
import { kernelToken } from '../contract/kernel-tokens.js'
import type { Actor } from '../contract/record.js'
import type { Door, Route } from '../contract/route.js'
import { isUnsupported } from '../kit/system-calls.js'
import { HttpErrors } from './errors.js'
import { MAX_FIELDS } from './guards.js'
import { errorBody, JSON_TYPE, writeFault } from './reply.js'

/** The address of a listener. */
export type ListenerInfo =
  | { readonly door: 'tcp'; readonly host: string; readonly port: number; readonly tls?: true }
  | { readonly door: 'socket'; readonly path: string }

/** TCP host and port (0: any free one), with the certificate chain and key in PEM for TLS. */
export interface Address {
  readonly host: string
  readonly port: number
  readonly tls?: { readonly cert: Uint8Array; readonly key: Uint8Array }
}

/** Listening sockets that the service manager passed to this process. `take` hands over the descriptor, to serve and to close. */
export interface InheritedSockets {
  readonly socket?: { readonly path: string; readonly take: () => number }
  readonly tcp?: { readonly host: string; readonly port: number; readonly take: () => number }
}

/** Authentication and guards of a listener that a plugin opened: the kernel cannot identify its callers. */
export interface Doorkeeper {
  /** Name of the authenticating plugin; requests wait until it has started. Empty when there is none. */
  readonly authenticator: string
  /** Identifies a caller that no tap of `authenticate` has identified, or refuses it; no answer for an unknown caller. */
  identify(incoming: Incoming, route: Route | undefined, done: (answer?: Actor | Fault) => void): unknown
  /** A refusal that does not depend on the caller. */
  refusal(incoming: Incoming, route: Route | undefined): Fault | undefined
  /** Whether only this machine reaches the listener, given these headers. */
  isLocal(headers: IncomingMessage['headers']): boolean
}

/** Serves TCP for the plugin that guards it. */
export interface ListenersApi {
  /** Whether any plugin authenticates. */
  isAuthenticated(): boolean
  /** Resolves when it listens; rejects with Node's error. */
  listen(at: Address, keeper: Doorkeeper): Promise<{ readonly port: number; close(): Promise<void> }>
}
/** Opens TCP listeners for plugins. */
export const Listeners = kernelToken<ListenersApi>('kernel.listeners@1')

/** Time limits in milliseconds and the maximum head in bytes of a request. */
export const LIMITS = {
  headersTimeout: 10_000,
  requestTimeout: 120_000,
  // Each check wakes an idle daemon: a slow request may take that much longer than its limit.
  connectionsCheckingInterval: 10_000,
  keepAliveTimeout: 5000,
  maxHeaderSize: 16 * 1024,
} as const

export interface Limits extends Readonly<Record<keyof typeof LIMITS, number>> {
  readonly opened?: ServerFollower
}

/** Answers 101 to an upgrade request whose route is a WebSocket. The result is passed to the carrier. */
export type Upgrade = () => Promise<unknown>
/** Serves a request of one door. */
export type Serve = (request: IncomingMessage, response: ServerResponse, upgrade?: Upgrade) => void
export type Handler = (door: Door, ...request: Parameters<Serve>) => void

/** Receives a server, the function that serves its requests, and its door. */
export type ServerFollower = (server: Server, serve: Serve, door: Door) => unknown
/** Calls the follower for each present and future server of every door, until the returned function is called. */
export const Servers = kernelToken<(follower: ServerFollower) => () => void>('kernel.servers@1')

/** One `http.Server` of the kernel; its requests go to the current routes. */
export class Listener {
  private constructor(
    readonly info: ListenerInfo,
    private readonly server: Server,
  ) {}

  /**
   * Listens on a Unix socket, 0600, and replaces an old socket file: the caller holds the lock of the home. The socket is bound
   * under another name and renamed, because a server that closes removes the name it was bound to. That file may belong to a
   * successor by then; the caller removes `path` after it has checked the lock.
   */
  static async socket(
    path: string,
    handler: Handler,
    limits: Limits,
    inherited?: InheritedSockets['socket'],
  ): Promise<Listener> {
    const server = makeServer('socket', handler, limits)
    if (inherited) {
      // The service manager keeps the file of its socket.
      const [own, other] = await Promise.all([stat(path).catch(() => undefined), stat(inherited.path)])
      if (!own || own.ino !== other.ino || own.dev !== other.dev)
        throw wrongDescriptor(inherited.path, `daemon.socket is ${path}`)
      await once(server.listen({ fd: inherited.take() }), 'listening')
      return new Listener({ door: 'socket', path }, server)
    }
    // A name in the same folder, not longer than `path`: the address structure of a socket bounds the length.
    const bound = `${path.slice(0, -1)}${path.endsWith('~') ? '-' : '~'}`
    // A daemon that was killed between bind and rename leaves its socket file. Other files stay.
    const left = await lstat(bound).catch(() => undefined)
    if (left?.isSocket()) await rm(bound, { force: true })
    await once(server.listen({ path: bound }), 'listening').catch(cause => {
      if (!isUnsupported(cause)) throw cause
      const text = `the file system of ${path} has no sockets (${cause.code})`
      throw new Fault('socket_unsupported', 500, text, {
        next: 'set daemon.socket in config.json to a path elsewhere',
        cause,
      })
    })
    await chmod(bound, 0o600)
    await rename(bound, path)
    return new Listener({ door: 'socket', path }, server)
  }

  static async tcp(at: Address, handler: Handler, limits: Limits, passed?: InheritedSockets['tcp']): Promise<Listener> {
    const { host, port, tls } = at
    // 'localhost' could resolve to ::1 alone; clients try 127.0.0.1.
    const address = host === 'localhost' ? '127.0.0.1' : host
    // The guards rely on the configured address.
    if (passed && (passed.host !== address || (port !== 0 && passed.port !== port)))
      throw wrongDescriptor(`${passed.host}:${passed.port}`, `http.host and http.port are ${host}:${port}`)
    const server = makeServer('tcp', handler, limits, tls)
    await once(server.listen(passed ? { fd: passed.take() } : { host: address, port }), 'listening')
    const bound = (server.address() as AddressInfo).port
    return new Listener({ door: 'tcp', host, port: bound, ...(tls ? { tls: true } : {}) }, server)
  }

  /** Takes no new connections, closes idle ones at once and the others when `grace` resolves. */
  async close(grace: Promise<void>): Promise<void> {
    const closed = new Promise<void>(resolve => this.server.close(() => resolve()))
    this.server.closeIdleConnections()
    await Promise.race([closed, grace])
    for (const socket of connections.get(this.server) ?? []) socket.destroy()
    await closed
  }
}

function wrongDescriptor(received: string, configured: string): Fault {
  return new Fault('listen_fd_wrong', 500, `the service manager handed over ${received}, but ${configured}`, {
    next: 'set ListenStream= in the unit and config.json to the same address',
  })
}

function makeServer(door: Door, handler: Handler, limits: Limits, tls?: Address['tls']): Server {
  // Node would refuse a request without Host in its own words; over TCP the guard refuses it in ours.
  const options = { ...limits, requireHostHeader: false }
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    answering.set(request.socket, response)
    handler(door, request, response)
  }
  const server: Server = tls
    ? https.createServer({ ...options, cert: Buffer.from(tls.cert), key: Buffer.from(tls.key) }, serve)
    : http.createServer(options, serve)
  // One above the limit, so that the guard sees a request with too many fields.
  server.maxHeadersCount = MAX_FIELDS + 1
  const open = new Set<Duplex>()
  connections.set(server, open)
  server.on('connection', socket => open.add(socket.once('close', () => open.delete(socket))))
  server.on('checkExpectation', (_request, response) => {
    writeFault(response, HttpErrors.expectation_failed(), { connection: 'close' })
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const response = answering.get(socket)
    // A second reply cannot be written into the middle of the first.
    const midway = response?.headersSent === true && !response.writableFinished
    if (midway || !socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
    const fault = BAD_REQUESTS[error.code ?? '']?.() ?? KernelErrors.invalid_request('the request is not valid HTTP')
    const body = JSON.stringify(errorBody(fault))
    const head = `HTTP/1.1 ${fault.status} ${http.STATUS_CODES[fault.status]}\r\ncontent-type: ${JSON_TYPE}\r\n`
    socket.end(`${head}content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`)
  })
  limits.opened?.(server, (...request) => handler(door, ...request), door)
  return server
}

/** Open connections of each server. Node no longer counts a connection after an upgrade. */
const connections = new WeakMap<Server, Set<Duplex>>()

const answering = new WeakMap<Duplex, ServerResponse>()

/** Faults by the error code of Node's parser; any other code means invalid HTTP. */
const BAD_REQUESTS: Readonly<Record<string, () => Fault>> = {
  HPE_HEADER_OVERFLOW: HttpErrors.headers_too_large,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: KernelErrors.payload_too_large,
  ERR_HTTP_REQUEST_TIMEOUT: HttpErrors.request_timeout,
}
