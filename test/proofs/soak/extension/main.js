import { closeSync, openSync } from 'node:fs'
import { describe } from 'svc/kit'
import { definePlugin, ok, routeOf } from 'svc/plugin'
import * as v from 'valibot'

/** What stays when the extension goes; `SVC_SOAK_LEAK` has the names of what is leaked. */
const KEPT = Symbol.for('acme.soak')
globalThis[KEPT] ??= []
const kept = globalThis[KEPT]

const LEAKS = {
  memory: () => kept.push(new Array(60_000).fill(kept.length)),
  descriptors: () => {
    for (let n = 0; n < 4; n++) kept.push(openSync('/dev/null'))
  },
  timers: () => {
    for (let n = 0; n < 4; n++) kept.push(setInterval(() => {}, 3_600_000))
  },
}

class Soak {
  #calls = 0

  constructor(kernel) {
    this.kernel = kernel
    for (const name of (process.env.SVC_SOAK_LEAK ?? '').split(',')) LEAKS[name]?.()
    // An ordinary life: what is opened is closed.
    closeSync(openSync('/dev/null'))
  }

  ping = () => ++this.#calls

  async wait(signal) {
    while (!signal.aborted) await this.kernel.clock.sleep(60_000, signal).catch(() => {})
  }
}

const route = routeOf(describe('Soak'))

export default definePlugin({ name: 'acme.soak', version: '1.0.0', service: async () => Soak }).surface({
  services: [{ name: 'wait', run: (self, signal) => self.wait(signal) }],
  routes: [
    route({
      method: 'GET',
      path: '/api/ext/acme.soak/ping',
      summary: 'Count calls',
      replies: { 200: v.object({ calls: v.number() }) },
      handle: self => ok({ calls: self.ping() }),
    }),
  ],
})
