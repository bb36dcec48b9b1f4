import { readFile } from 'node:fs/promises'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Door } from '../../../kernel/plugin.js'

/** Maximum connections of one listener: a quarter of the descriptors that this process may have. */
export async function mostConnections(): Promise<number> {
  // A usual limit, for systems that do not report one.
  const text = await readFile('/proc/self/limits', 'utf8').catch(() => '')
  return Math.max(8, Math.floor(Number(/^Max open files +(\d+)/m.exec(text)?.[1] ?? 10_240) / 4))
}

/**
 * Limits the connections of a server. At the process's limit of descriptors nothing could be opened, and libuv would silently drop
 * connections. Connections beyond `most` are closed at once; that is logged when it begins, and again only after half of them have
 * ended.
 * @returns removes the limit
 */
export function boundConnections(server: Server, door: Door, most: number, warn: (text: string) => void): () => void {
  let open = 0
  let isReported = false
  const connected = (socket: Socket) => {
    open++
    socket.once('close', () => {
      if (--open <= most / 2) isReported = false
    })
  }
  const dropped = () => {
    if (!isReported) warn(`${most} connections are open on the ${door} listener; more are closed`)
    isReported = true
  }
  server.maxConnections = most
  server.on('connection', connected).on('drop', dropped)
  return () => {
    server.maxConnections = Number.POSITIVE_INFINITY
    server.off('connection', connected).off('drop', dropped)
  }
}
