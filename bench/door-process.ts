// A kernel that listens on TCP, or a holder of idle connections, a process of its own: what it does is asked for by name.
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import * as v from 'valibot'
import { createKernel, definePlugin, ok, type Plugin, routeOf } from '../kernel/index.js'
import { answer } from './child.js'
import { watchLoop } from './loop-gap.js'

const plugin = definePlugin({ name: 'bench', version: '1.0.0', service: async () => class {} }).surface({
  routes: [
    routeOf<object>()({
      method: 'GET',
      path: '/api/bench',
      area: 'Bench',
      summary: 'Nothing',
      replies: { 200: v.object({}) },
      handle: () => ok({}),
    }),
  ],
}) as Plugin

let longestGap: (() => number) | undefined

const handlers = {
  /** Opens a kernel; one that does not look its peers up is given no connection tables. Returns its port. */
  async open(home: string, looksUp: boolean): Promise<number> {
    await writeFile(path.join(home, 'config.json'), JSON.stringify({ http: { port: 0, enabled: true } }))
    const tables = looksUp ? {} : { connectionTables: path.join(home, 'none') }
    const { host } = await createKernel({ home, plugins: [plugin], listen: ['tcp'], ...tables })
    const [tcp] = host.listeners()
    return tcp?.door === 'tcp' ? tcp.port : 0
  },

  /** Milliseconds of the longest gap of the loop since the last call. */
  gap(): number {
    const gap = longestGap?.() ?? 0
    longestGap = watchLoop()
    return gap
  },

  /** Holds so many connections to itself. */
  async hold(count: number): Promise<void> {
    const server = net.createServer(() => {}).listen(0, '127.0.0.1', 1024)
    await once(server, 'listening')
    const { port } = server.address() as net.AddressInfo
    for (let n = 0; n < count; n += 100)
      await Promise.all(Array.from({ length: 100 }, () => once(net.connect(port, '127.0.0.1'), 'connect')))
  },
}
export type DoorHandlers = typeof handlers

answer(handlers)
