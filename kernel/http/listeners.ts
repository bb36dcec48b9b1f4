import { chmod, rm } from 'node:fs/promises'
import http, { type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Fault, KernelErrors } from '../errors.js'
import type { ListenerInfo } from '../host/view.js'
import type { Door } from '../route.js'
import { errorBody } from './generation.js'

const SERVER = {
  headersTimeout: 10_000,
  requestTimeout: 120_000,
  keepAliveTimeout: 5000,
  maxHeaderSize: 16 * 1024,
} as const

export type Handler = (door: Door, request: IncomingMessage, response: ServerResponse) => void

/** One `http.Server` of the kernel's own; what it serves is the current generation's. */
export class Listener {
  private constructor(
    readonly info: ListenerInfo,
    private readonly server: Server,
  ) {}

  /** Listens on a Unix socket, 0600; an old socket file is removed, for the caller holds the lock of the home. */
  static async socket(path: string, handler: Handler): Promise<Listener> {
    await rm(path, { force: true })
    const server = makeServer('socket', handler)
    await listening(server, { path })
    await chmod(path, 0o600)
    return new Listener({ door: 'socket', path }, server)
  }

  /** Listens on TCP; port 0 means any. Throws `http_port_in_use`. */
  static async tcp(host: string, port: number, handler: Handler): Promise<Listener> {
    const server = makeServer('tcp', handler)
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
    await closed
  }
}

function makeServer(door: Door, handler: Handler): Server {
  const server = http.createServer(SERVER, (request, response) => handler(door, request, response))
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
    const large = error.code === 'HPE_HEADER_OVERFLOW'
    const fault = large
      ? KernelErrors.headers_too_large()
      : KernelErrors.invalid_request('the request is not valid HTTP')
    const body = JSON.stringify(errorBody(fault))
    const head = `HTTP/1.1 ${fault.status} ${large ? 'Request Header Fields Too Large' : 'Bad Request'}`
    socket.end(
      `${head}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
    )
  })
  return server
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
