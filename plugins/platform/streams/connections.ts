import { readFile } from 'node:fs/promises'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Door } from '../../../kernel/plugin.js'

/** Connections that one listener takes: a quarter of the descriptors that this process may have. */
export async function mostConnections(): Promise<number> {
  // On systems that tell no limit, what is usual there.
  const text = await readFile('/proc/self/limits', 'utf8').catch(() => '')
  const descriptors = Number(/^Max open files +(\d+)/m.exec(text)?.[1] ?? 10_240)
  return Math.max(8, Math.floor(descriptors / 4))
}

/**
 * At the process's limit of descriptors nothing could be opened, and libuv would turn connections away without a word: more than
 * `most` are closed at once, which is told when it begins, and again only after half of them were gone.
 * @returns takes the bound away
 */
export function boundConnections(server: Server, door: Door, most: number, warn: (text: string) => void): () => void {
  let open = 0
  let told = false
  const connected = (socket: Socket) => {
    open++
    socket.once('close', () => {
      open--
      if (open <= most / 2) told = false
    })
  }
  const dropped = () => {
    if (!told) warn(`${most} connections are open on the ${door} listener; more are closed until some end`)
    told = true
  }
  server.maxConnections = most
  server.on('connection', connected).on('drop', dropped)
  return () => {
    server.maxConnections = Number.POSITIVE_INFINITY
    server.off('connection', connected).off('drop', dropped)
  }
}
