import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import { KernelErrors } from '../errors.js'
import { type Ending, frameText, type Wire } from './streams.js'

/** Bytes of a message: what a reader may say at most before it is heard that it should say nothing. */
const MAX_MESSAGE = 4096
/** Milliseconds that a reader has to answer the closing of its channel. */
const CLOSE_MS = 2000

/** What a reader is told at the end of its channel: code (RFC 6455, 7.4.1) and reason. */
const CLOSING: Readonly<Record<Exclude<Ending, 'gone'>, readonly [code: number, reason: string]>> = {
  done: [1000, ''],
  shutdown: [1001, 'the daemon is stopping'],
  spoke_binary: [1003, 'this channel takes no messages; send requests'],
  spoke: [1008, 'this channel takes no messages; send requests'],
  failed: [1011, 'the channel failed'],
  replaced: [1012, 'this part of the daemon is being replaced; come back'],
  slow: [1013, 'messages were not read in time; come back'],
}

/** A WebSocket on which the daemon alone speaks: each frame is a message of JSON. */
export class SocketWire implements Wire<unknown> {
  /** Whether the last ping has no answer yet. */
  #silent = false

  private constructor(
    readonly into: Socket,
    private readonly channel: WebSocket,
  ) {}

  /** Answers 101; from then on the response is no use. Throws `upgrade_required` for a handshake that is not valid. */
  static async accept(request: IncomingMessage, response: ServerResponse, head: Buffer): Promise<SocketWire> {
    const { WebSocketServer } = await import('ws')
    const server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: MAX_MESSAGE,
      handleProtocols: () => false,
      // In @types/ws it is missing.
      ...({ closeTimeout: CLOSE_MS } as object),
    })
    // It would answer in words of its own.
    server.on('wsClientError', () => {})
    let wire: SocketWire | undefined
    server.handleUpgrade(request, request.socket, head, channel => {
      response.detachSocket(request.socket)
      wire = new SocketWire(request.socket, channel)
    })
    return wire ?? refuseHandshake(response)
  }

  watch(over: (how: Ending) => void): void {
    this.channel.on('message', (_, isBinary) => over(isBinary ? 'spoke_binary' : 'spoke'))
    this.channel.on('pong', () => {
      this.#silent = false
    })
    this.channel.once('close', () => over('gone'))
    // What breaks the protocol is answered by the library with the code for it, and then closed.
    this.channel.on('error', () => {})
  }

  send(frame: unknown): void {
    this.channel.send(frameText(frame))
  }

  beat(): Ending | undefined {
    if (this.#silent) return this.into.writableNeedDrain ? 'slow' : 'gone'
    this.#silent = true
    this.channel.ping()
    return undefined
  }

  end(how: Ending): void {
    if (how === 'gone') this.channel.terminate()
    else this.channel.close(...CLOSING[how])
  }
}

/** Throws `upgrade_required`, its reply saying by header what to ask for. */
export function refuseHandshake(response: ServerResponse): never {
  for (const [name, value] of [
    ['upgrade', 'websocket'],
    ['sec-websocket-version', '13'],
  ] as const)
    response.setHeader(name, value)
  throw KernelErrors.upgrade_required()
}
