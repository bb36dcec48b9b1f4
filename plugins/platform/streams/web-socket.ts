import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ServerOptions, WebSocket } from 'ws'
import { refuseHandshake } from '../../../kernel/platform.js'
import { type Ending, frameText, type Wire } from './api.js'

const OPTIONS: ServerOptions & { readonly closeTimeout: number } = {
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  handleProtocols: () => false,
  /** Maximum bytes of a reader's message before the channel is closed for it. */
  maxPayload: 4096,
  /** Milliseconds for a reader to confirm the close of its channel. */
  closeTimeout: 2000,
}

/** Close code (RFC 6455, 7.4.1) and reason for each end of a channel. */
const CLOSING: Readonly<Record<Exclude<Ending, 'gone'>, readonly [code: number, reason: string]>> = {
  done: [1000, ''],
  shutdown: [1001, 'the daemon is stopping'],
  spoke_binary: [1003, 'this channel takes no messages; send requests'],
  spoke: [1008, 'this channel takes no messages; send requests'],
  failed: [1011, 'the channel failed'],
  replaced: [1012, 'this part of the daemon is being replaced; reconnect'],
  dismissed: [1008, 'the token that opened this channel is no longer valid'],
  slow: [1013, 'messages were not read in time; reconnect'],
}

/**
 * Answers 101, after which the response is unusable. The channel is server-to-client: each frame is a JSON message. `head` is data
 * that followed the request. Throws `upgrade_required` for an invalid handshake.
 */
export async function channelWire(
  request: IncomingMessage,
  response: ServerResponse,
  head: Buffer,
): Promise<Wire<unknown>> {
  const { socket: into } = request
  const { WebSocketServer } = await import('ws')
  const server = new WebSocketServer(OPTIONS)
  // Without a listener the library would send a reply of its own.
  server.on('wsClientError', () => {})
  let accepted: WebSocket | undefined
  server.handleUpgrade(request, into, head, made => (accepted = made))
  const channel = accepted ?? refuseHandshake(response)
  response.detachSocket(into)
  let unanswered = false
  return {
    into,
    watch(over) {
      channel.on('message', (_, isBinary) => over(isBinary ? 'spoke_binary' : 'spoke'))
      channel.on('pong', () => (unanswered = false))
      channel.once('close', () => over('gone'))
      // The library answers a protocol error with its close code and closes the channel.
      channel.on('error', () => {})
    },
    send: frame => channel.send(frameText(frame)),
    beat() {
      if (unanswered) return into.writableNeedDrain ? 'slow' : 'gone'
      unanswered = true
      channel.ping()
      return undefined
    },
    end: how => (how === 'gone' ? channel.terminate() : channel.close(...CLOSING[how])),
  }
}
