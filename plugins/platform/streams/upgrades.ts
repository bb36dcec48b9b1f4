import { type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import type { Serve } from '../../../kernel/platform.js'
import { channelWire } from './web-socket.js'

/** Routes WebSocket requests of a server like other requests, until the returned function is called. */
export function takeUpgrades(server: Server, serve: Serve): () => void {
  const upgrade = (request: IncomingMessage, _socket: Duplex, head: Buffer) => {
    if (!asksForSocket(request)) return ignoreUpgrade(server, request, head)
    const response = detached(request)
    if (response) serve(request, response, () => channelWire(request, response, head))
  }
  const request = ({ headers }: IncomingMessage, response: ServerResponse) => {
    if (headers.upgrade !== undefined) response.shouldKeepAlive = false
  }
  // Newer Node versions (24.9) call this, and serve other requests as if they had requested no upgrade. But Node loses data of the
  // same packet, so those connections end with the reply.
  Object.assign(server, { shouldUpgradeCallback: asksForSocket })
  server.on('upgrade', upgrade).prependListener('request', request)
  return () => {
    server.off('upgrade', upgrade).off('request', request)
    Object.assign(server, { shouldUpgradeCallback: () => false })
  }
}

const asksForSocket = ({ method, headers }: IncomingMessage): boolean =>
  method === 'GET' && /^websocket$/i.test(headers.upgrade ?? '')

/** A response for a socket that was detached from the server; it ends the socket, unless it is detached from the response. */
function detached(request: IncomingMessage): ServerResponse | undefined {
  const { socket } = request
  socket.on('error', () => socket.destroy())
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.once('finish', () => socket.destroySoon())
  try {
    response.assignSocket(socket)
    // Until its channel is open, reading is the only way to notice that the peer has disconnected.
    socket.resume().once('end', () => response.socket?.destroy())
    return response
  } catch {
    // A pipelined request after one without a reply: no client does that, and the two replies could not be told apart.
    socket.destroy()
    return undefined
  }
}

/** Ignores an unsupported upgrade, as HTTP requires: the request is parsed again without the header. */
function ignoreUpgrade(server: Server, request: IncomingMessage, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders, socket } = request
  const lines = [`${method} ${url} HTTP/${httpVersion}`]
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (rawHeaders[i]?.toLowerCase() !== 'upgrade') lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`)
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]))
  server.emit(socket instanceof TLSSocket ? 'secureConnection' : 'connection', socket)
}
