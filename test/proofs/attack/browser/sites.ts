import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

const TRICKS = readFileSync(new URL('./tricks.js', import.meta.url), 'utf8')
const HTML = { 'content-type': 'text/html; charset=utf-8' }
const CALLED = '<!doctype html><title>harmless</title><body><script src="/tricks.js"></script>'
/** A frame without an origin of its own: what it asks has `Origin: null`. */
const FRAMED = `<!doctype html><body><iframe sandbox="allow-scripts allow-forms allow-popups" srcdoc="${CALLED.replaceAll('"', '&quot;').replace('/tricks.js', 'tricks.js')}"></iframe>`

/** A site that means harm: any page of it carries the tricks, `/framed` has them in a frame without an origin. */
export const harmful: RequestListener = (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://site.example')
  if (pathname === '/tricks.js')
    return void response
      .writeHead(200, { 'content-type': 'text/javascript', 'access-control-allow-origin': '*' })
      .end(TRICKS)
  if (pathname === '/on') return void response.writeHead(307, { location: searchParams.get('to') ?? '/' }).end()
  return void response.writeHead(200, HTML).end(pathname === '/framed' ? FRAMED : CALLED)
}

/** Serves on this machine alone until `close`, which also ends the connections. @param port 0 is any that is free */
export async function serve(
  listener: RequestListener,
  port = 0,
): Promise<{ server: Server; port: number; close(): Promise<void> }> {
  const server = createServer(listener)
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve))
  const sockets = new Set<Socket>()
  server.on('connection', socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  const close = () =>
    new Promise<void>(resolve => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
    })
  return { server, port: (server.address() as AddressInfo).port, close }
}

/** What a daemon would be that believes whoever reaches its port: every trick has to do it harm. */
export async function credulous(port: number): ReturnType<typeof serve> {
  const served = await serve((request, response) => {
    const { origin = '*', accept = '' } = request.headers
    const shared = {
      'access-control-allow-origin': origin,
      'access-control-allow-methods': '*',
      'access-control-allow-headers': '*',
      'access-control-allow-credentials': 'true',
    }
    if (accept.includes('text/event-stream'))
      return void response.writeHead(200, { ...shared, 'content-type': 'text/event-stream' }).write('data: 1\n\n')
    request.resume()
    const type = request.headers['sec-fetch-dest'] === 'image' ? 'image/svg+xml' : 'text/javascript'
    const text = type === 'image/svg+xml' ? '<svg xmlns="http://www.w3.org/2000/svg"/>' : 'secret = 1'
    return void response.writeHead(200, { ...shared, 'content-type': type }).end(text)
  }, port)
  served.server.on('upgrade', ({ headers }, socket) => {
    const key = `${headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`
    const accept = createHash('sha1').update(key).digest('base64')
    const head = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade']
    socket.write(`${[...head, `Sec-WebSocket-Accept: ${accept}`].join('\r\n')}\r\n\r\n`)
  })
  return served
}
