// A kernel that listens on TCP, or a holder of idle connections, a process of its own: what it does is asked for by name.

import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import * as v from 'valibot'
import { createKernel } from '../../kernel/index.js'
import { describe } from '../../kernel/kit/annotations/index.js'
import { definePlugin, ok, type Plugin, routeOf } from '../../kernel/plugin.js'
import { auth, configuration, tcp } from '../../plugins/index.js'
import { answer } from './child.js'
import { watchLoop } from './loop-gap.js'

const plugin = definePlugin({ name: 'bench', version: '1.0.0', service: async () => class {} }).surface({
  routes: [
    routeOf<object>()({
      method: 'GET',
      path: '/api/bench',
      with: [describe('Bench')],
      summary: 'Nothing',
      replies: { 200: v.object({}) },
      handle: () => ok({}),
    }),
  ],
}) as Plugin

let longestGap: (() => number) | undefined

const handlers = {
  /** Opens a kernel that knows its callers in this way; `open` takes everybody. */
  async open(home: string, by: 'token' | 'peer' | 'open'): Promise<{ readonly port: number; readonly token?: string }> {
    const http = { port: 0, require_token: by !== 'open', ...(by === 'peer' ? { trust_own_user: true } : {}) }
    await writeFile(path.join(home, 'config.json'), JSON.stringify({ http }))
    const plugins = [configuration, tcp, plugin, ...(by === 'token' ? [auth] : [])]
    const { host } = await createKernel({ home, plugins, listen: ['tcp'] })
    const [at] = host.listeners()
    const port = at?.door === 'tcp' ? at.port : 0
    if (by !== 'token') return { port }
    return { port, token: (await readFile(path.join(home, 'operator.token'), 'utf8')).trim() }
  },

  /** Milliseconds of the longest gap of the loop since the last call. */
  gap(): number {
    const gap = longestGap?.() ?? 0
    longestGap = watchLoop()
    return gap
  },

  /** Milliseconds of processor time that this process has used. */
  cpu(): number {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
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
