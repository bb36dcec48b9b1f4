import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { describe } from '../../kernel/kit/annotations/index.js'
import {
  definePlugin,
  type Fault,
  ok,
  type Plugin,
  type PluginKernel,
  routeOf,
  surfaceOf,
} from '../../kernel/plugin.js'
import {
  type Check,
  Checks,
  Daemon,
  type DaemonApi,
  finding,
  type StatusMember,
  StatusMembers,
} from '../../plugins/desk/daemon/api.js'
import { Events } from '../../plugins/platform/events/api.js'
import { Reconcile } from '../../plugins/platform/reconcile/api.js'
import type { TestKernel } from '../harness/kernel.js'

const needs = { daemon: Daemon, events: Events, reconcile: Reconcile }
type Probe = { kernel: PluginKernel<typeof needs>; daemon: DaemonApi }

/** A plugin that contributes what a test wants and lets the test look at the kernel from a plugin's side. */
export function guest(parts: { members?: StatusMember[]; checks?: Check[]; refuse?: Fault } = {}) {
  const seen: Partial<Probe> = {}
  const { contribute, tap } = surfaceOf<object>()
  const route = routeOf<{ enter(what: string): Promise<void> }>()
  const plugin: Plugin = definePlugin({
    name: 'guest',
    version: '1.0.0',
    requires: needs,
    service: async () =>
      class {
        constructor(readonly kernel: PluginKernel<typeof needs>) {
          seen.kernel = kernel
          seen.daemon = kernel.needs.daemon
        }
        enter(what: string) {
          return this.kernel.needs.daemon.admit(what)
        }
      },
  }).surface({
    taps: [
      tap(
        Daemon,
        daemon => daemon.admission,
        () => async what => (what === 'guest' ? parts.refuse : undefined),
      ),
    ],
    registries: [contribute(StatusMembers, () => parts.members ?? []), contribute(Checks, () => parts.checks ?? [])],
    routes: [
      route({
        method: 'POST',
        path: '/api/guest/{what}',
        with: [describe('Guest')],
        summary: 'New work',
        replies: { 200: v.object({}) },
        handle: async (self, { params }) => {
          await self.enter(params.what)
          return ok({})
        },
      }),
    ],
  })
  return { plugin, seen: seen as Probe }
}

export const item = (severity: string, id: string, code = 'some_trouble') =>
  finding({ id, code, category: 'guest', severity, title: id, message: id })

export async function doctor(host: TestKernel, query = '') {
  const { status, body } = await host.request('GET', `/api/doctor${query}`)
  assert.is(status, 200)
  return body
}

export const codes = (body: { items: { code: string }[] }) => body.items.map(entry => entry.code)
