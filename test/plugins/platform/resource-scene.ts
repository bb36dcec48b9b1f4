import * as v from 'valibot'
import { definePlugin, kind, type Plugin, type PluginKernel } from '../../../kernel/plugin.js'
import daemon from '../../../plugins/desk/daemon/index.js'
import resources from '../../../plugins/platform/resources/index.js'
import type { VirtualClock } from '../../../testing/virtual-clock.js'
import { boot, type TestKernel } from '../../harness/kernel.js'

export const Note = kind({
  name: 'note',
  spec: v.object({ text: v.pipe(v.string(), v.minLength(1)), tags: v.optional(v.array(v.string())) }),
  maxBytes: 1000,
})
export const Owned = kind({ name: 'note.owned', spec: v.object({}), maxBytes: 1000, writers: 'owner' })

export function notes() {
  const instance: { kernel?: PluginKernel } = {}
  const plugin = definePlugin({
    name: 'notes',
    version: '1.0.0',
    service: async () =>
      class {
        constructor(kernel: PluginKernel) {
          instance.kernel = kernel
        }
      },
  }).surface({ kinds: [Note, Owned] })
  return { plugin, kernel: () => instance.kernel as PluginKernel }
}

export async function start({
  plugins = [],
  ...options
}: {
  clock?: VirtualClock
  home?: string
  plugins?: readonly Plugin[]
} = {}) {
  const { plugin, kernel } = notes()
  const host = await boot({ plugins: [daemon, resources, plugin, ...plugins], ...options })
  return { host, inside: kernel() }
}

export const global = { kind: 'global' }
export const body = (text: string, expected_version?: number) => ({
  scope: global,
  spec: { text },
  ...(expected_version === undefined ? {} : { expected_version }),
})

/** Status and code of a reply, as `409 record_exists`. */
export async function outcome(host: TestKernel, method: string, url: string, sent?: unknown) {
  const reply = await host.request(method, url, sent)
  return `${reply.status} ${reply.body?.code ?? ''}`.trim()
}

export const ids = async (host: TestKernel, query = '') =>
  (await host.request('GET', `/api/resources${query}`)).body.records.map((record: { id: string }) => record.id)
