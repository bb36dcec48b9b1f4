import * as v from 'valibot'
import { describe } from '../../../kernel/kit/annotations/index.js'
import {
  definePlugin,
  kind,
  type Notify,
  ok,
  type PluginKernel,
  registry,
  routeOf,
  surfaceOf,
  token,
} from '../../../kernel/plugin.js'

/** What stays: it serves a route, offers a hook and a registry, and tells of what comes and goes. */
export class Steady {
  readonly heard: Notify<[string[]]>

  constructor(readonly kernel: PluginKernel) {
    this.heard = kernel.hooks.notify('heard')
  }
}

export const SteadyToken = token<Steady>('steady@1')
export const Words = registry<string>('steady.words@1')
const ThingKind = kind({ name: 'prove.thing', spec: v.object({ n: v.number() }), maxBytes: 1000 })

export function steady(seen: (service: Steady) => void) {
  const route = routeOf<Steady>()
  return definePlugin({
    name: 'steady',
    version: '1',
    provides: SteadyToken,
    service: async () =>
      class extends Steady {
        constructor(kernel: PluginKernel) {
          super(kernel)
          seen(this)
        }
      },
  }).surface({
    routes: [
      route({
        method: 'GET',
        path: '/api/steady/{n}',
        with: [describe('Proof')],
        summary: 'Answers',
        replies: { 200: v.object({ n: v.string() }) },
        handle: (_self, { params }) => ok({ n: params.n }),
      }),
    ],
  })
}

/** What comes and goes. `leak` is kept for every life: what the proof must find out. */
export function coming(lives: { applied: number; reconciled: number }, leak?: unknown[]) {
  class Coming {
    constructor(readonly kernel: PluginKernel) {
      lives.applied++
      leak?.push(new Array(20_000).fill(lives.applied))
    }
  }
  const route = routeOf<Coming>()
  const { contribute, reconciler, tap } = surfaceOf<Coming>()
  return definePlugin({
    name: 'coming',
    version: '1',
    requires: { steady: SteadyToken },
    service: async () => Coming,
  }).surface({
    kinds: [ThingKind],
    registries: [contribute(Words, () => ['word'])],
    taps: [
      tap(
        SteadyToken,
        service => service.heard,
        () => async (words: string[]) => void words.push('heard'),
      ),
    ],
    reconcilers: [
      reconciler({
        kind: ThingKind,
        run: (_self, { records }) => {
          lives.reconciled += records.length
        },
      }),
    ],
    services: [{ name: 'wait', run: (self, signal) => self.kernel.clock.sleep(Number.POSITIVE_INFINITY, signal) }],
    routes: [
      route({
        method: 'GET',
        path: '/api/coming',
        with: [describe('Proof')],
        summary: 'Answers while it is there',
        replies: { 200: v.object({}) },
        handle: () => ok({}),
      }),
    ],
  })
}
