import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import path from 'node:path'
import * as assert from 'uvu/assert'
import type { Plugin } from '../../../../kernel/plugin.js'
import vault from '../../../../plugins/access/vault/index.js'
import agents from '../../../../plugins/agents/agents/index.js'
import providers from '../../../../plugins/agents/providers/index.js'
import sidecars from '../../../../plugins/agents/sidecars/index.js'
import bundles from '../../../../plugins/delivery/bundles/index.js'
import daemon from '../../../../plugins/desk/daemon/index.js'
import windowManager from '../../../../plugins/desk/window-manager/index.js'
import workspaces from '../../../../plugins/desk/workspaces/index.js'
import resources from '../../../../plugins/platform/resources/index.js'
import bridges from '../../../../plugins/reach/bridges/index.js'
import automation from '../../../../plugins/work/automation/index.js'
import { boot, type Reply, type TestKernel, temporaryFolder } from '../../../harness/kernel.js'
import { fakeSessions } from '../../work/automation/fake-sessions.js'
import { type FakeExtensions, fakeExtensions } from './fake-extensions.js'
import { type KitOptions, writeKit } from './kit.js'

/** A daemon with bundles, extensions that a test hands it, and two workspaces. */
export interface Scene extends TestKernel {
  readonly extensions: FakeExtensions
  /** Ids and roots of the workspaces `one` and `two`. */
  readonly one: string
  readonly two: string
  readonly roots: readonly string[]
  /** Writes an extension and loads it; written again it changes. Returns its folder. */
  kit(options?: KitOptions): Promise<string>
  /** What was left out of the one that was written last. */
  leftOut(): readonly string[]
  /** Status, and code of an error. */
  outcome(method: string, url: string, body?: unknown): Promise<string>
  activate(more?: Record<string, unknown>): Promise<Reply>
  /** `kind id` of every record of an activation, or of all of them, ascending. */
  owned(id?: string): Promise<string[]>
  record(kind: string, id: string): Promise<Reply>
  /** Waits until all passes of the reconcile loop are over. */
  quiet(): Promise<void>
  until<T>(request: () => Promise<T | undefined | false>, what: string): Promise<T>
  end(): Promise<void>
}

export const REQUEST = { extension_name: 'demo-kit', bundle_name: 'release-kit', profile_name: 'default' }

export async function scene(options: { home?: string; plugins?: readonly Plugin[] } = {}): Promise<Scene> {
  const home = options.home ?? (await temporaryFolder('bundles-home'))
  const folder = await temporaryFolder('bundles-kits')
  const { plugin, extensions } = fakeExtensions()
  const sessions = fakeSessions()
  const inTree = [
    daemon,
    resources,
    workspaces,
    providers,
    agents,
    sessions.plugin,
    automation,
    bridges,
    sidecars,
    windowManager,
    vault,
  ]
  const host = await boot({ home, plugins: [...inTree, plugin, bundles, ...(options.plugins ?? [])] })
  const roots: string[] = []
  const ids: string[] = []
  const known = (await host.request('GET', '/api/workspaces')).body.workspaces
  for (const name of ['one', 'two']) {
    const found = known.find((workspace: { name: string }) => workspace.name === name)
    const root = found?.root_dir ?? path.join(await temporaryFolder('bundles-root'), name)
    await mkdir(root, { recursive: true })
    roots.push(root)
    ids.push(found?.id ?? (await host.request('POST', '/api/workspaces', { root_dir: root, name })).body.workspace.id)
  }
  const until: Scene['until'] = async (request, what) => {
    for (let tries = 0; tries < 8000; tries++) {
      const answer = await request()
      if (answer) return answer
      await new Promise(resolve => setTimeout(resolve, 5))
    }
    throw new Error(`waited in vain until ${what}`)
  }
  const folders = new Map<string, string>()
  const records = async (query: string): Promise<Reply[]> =>
    (await host.request('GET', `/api/resources${query}`)).body.records
  const one: Scene = {
    ...host,
    extensions: extensions(),
    one: ids[0] as string,
    two: ids[1] as string,
    roots,
    leftOut: () => extensions().leftOut,
    async kit(kit = {}) {
      const name = kit.name ?? 'demo-kit'
      const own = folders.get(name) ?? (await mkdtemp(path.join(folder, `${name}-`)))
      folders.set(name, own)
      await rm(own, { recursive: true })
      await extensions().load(await writeKit(own, kit))
      await one.quiet()
      return own
    },
    async outcome(method, url, body) {
      const reply = await host.request(method, url, body)
      return `${reply.status} ${reply.body?.code ?? ''}`.trim()
    },
    async activate(more = {}) {
      const reply = await host.request('POST', '/api/bundles/activations', { ...REQUEST, ...more })
      assert.is(reply.status, 201, JSON.stringify(reply.body))
      return reply.body.activation
    },
    async owned(id) {
      const all = await records(id === undefined ? '' : `?owner_kind=bundle.activation&owner_id=${id}`)
      return all.filter(({ owner }) => owner.kind === 'bundle.activation').map(({ kind, id: own }) => `${kind} ${own}`)
    },
    record: async (kind, id) => (await host.request('GET', `/api/resources/${kind}/${id}`)).body.record,
    quiet: () => extensions().quiet(),
    until,
    async end() {
      await host.close()
      for (const used of [folder, ...roots.map(root => path.dirname(root)), ...(options.home ? [] : [home])])
        await rm(used, { recursive: true, force: true })
    },
  }
  return one
}
