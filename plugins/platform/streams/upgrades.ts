import { type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import type { Serve } from '../../../kernel/platform.js'
import { channelWire } from './web-socket.js'

/** Has a server answer requests for a WebSocket, as routes that declare them, until the returned function is called. */
export function takeUpgrades(server: Server, serve: Serve): () => void {
  const upgrade = (request: IncomingMessage, _socket: Duplex, head: Buffer) => {
    if (!asksForSocket(request)) return ignoreUpgrade(server, request, head)
    const response = detached(request)
    if (response) serve(request, response, () => channelWire(request, response, head))
  }
  const request = ({ headers }: IncomingMessage, response: ServerResponse) => {
    if (headers.upgrade !== undefined) response.shouldKeepAlive = false
  }
  // A later Node (24.9) asks which upgrades are offered, and serves the other requests as if they had asked for none. But it
  // loses what came with them in one packet: their connection ends with the reply.
  Object.assign(server, { shouldUpgradeCallback: asksForSocket })
  server.on('upgrade', upgrade).prependListener('request', request)
  return () => {
    server.off('upgrade', upgrade).off('request', request)
    Object.assign(server, { shouldUpgradeCallback: () => false })
  }
}

const asksForSocket = ({ method, headers }: IncomingMessage): boolean =>
  method === 'GET' && /^websocket$/i.test(headers.upgrade ?? '')

/** The response to a request whose socket the server has let go of; it ends the socket, unless it is taken from it. */
function detached(request: IncomingMessage): ServerResponse | undefined {
  const { socket } = request
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
function ignoreUpgrade(server: Server, request: IncomingMessage, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders, socket } = request
  const lines = [`${method} ${url} HTTP/${httpVersion}`]
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (rawHeaders[i]?.toLowerCase() !== 'upgrade') lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`)
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]))
  server.emit(socket instanceof TLSSocket ? 'secureConnection' : 'connection', socket)
}
