// A kernel inside a program of your own: plugins of the package beside one that is written here; nothing listens, requests
// are injected. After `npm run build`: node --import tsx examples/embed.ts

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createKernel } from 'svc'
import { describe } from 'svc/kit'
import { definePlugin, Fault, ok, type PluginKernel, routeOf } from 'svc/plugin'
import { acp, agents, base, daemon, providers, sessions, workspaces, worktrees } from 'svc/plugins'
import * as v from 'valibot'

/** What the plugin does; the kernel hands it everything that it may touch. */
class Greetings {
  constructor(private readonly kernel: PluginKernel) {}

  greet(name: string): string {
    if (name === 'nobody') throw new Fault('nobody_here', 404, 'nobody is here', { next: 'greet somebody' })
    this.kernel.log.info(`greeted ${name}`)
    return `Hello, ${name}`
  }
}

const route = routeOf<Greetings>(describe('Greetings'))

/** What the plugin registers, as data. */
const mine = definePlugin({
  name: 'acme.greetings',
  version: '1.0.0',
  service: async () => Greetings,
}).surface({
  routes: [
    route({
      method: 'GET',
      path: '/api/ext/acme.greetings/{name}',
      summary: 'Greet somebody',
      replies: { 200: v.object({ greeting: v.string() }) },
      handle: async (service, { params }) => ok({ greeting: service.greet(params.name) }),
    }),
  ],
})

const home = await mkdtemp(join(tmpdir(), 'svc-embed-'))
const kernel = await createKernel({
  home,
  plugins: [...base, daemon, workspaces, providers, agents, acp, worktrees, sessions, mine],
  listen: [],
  log: line => line.plugin === mine.name && console.log(`log: ${line.msg}`),
})
for (const url of ['/api/status', '/api/ext/acme.greetings/world', '/api/ext/acme.greetings/nobody']) {
  const reply = await kernel.inject({ method: 'GET', url })
  console.log(`${url}: ${reply.status} ${reply.body.slice(0, 60)}`)
}
const errors = await kernel.close()
await rm(home, { recursive: true })
console.log(`closed with ${errors.length} errors`)
