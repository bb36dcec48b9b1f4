import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Ports below those that the system gives out, from 32768 on: no other program is given one between this call and its use. Browsers
 * refuse 10080.
 */
const [FIRST, LAST] = [11_000, 32_000]
const given = new Set<number>()

/** A free port of an address, for what has to know its port before it listens. */
export async function freePort(host = '127.0.0.1'): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST))
    if (given.has(port)) continue
    const server = createServer().listen(port, host)
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    )
    if (!isFree) continue
    given.add(port)
    server.close()
    await once(server, 'close')
    return port
  }
}
