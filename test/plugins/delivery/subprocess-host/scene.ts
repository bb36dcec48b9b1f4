import { cp, realpath, rm } from 'node:fs/promises'
import path from 'node:path'
import * as v from 'valibot'
import { definePlugin, kind } from '../../../../kernel/plugin.js'
import type { InstalledExtension } from '../../../../plugins/delivery/extensions/api.js'
import { keyOf } from '../../../../plugins/delivery/extensions/identity.js'
import { LogRing } from '../../../../plugins/delivery/extensions/load/log-ring.js'
import {
  type Manifest,
  parseManifest,
  type SourceTier,
} from '../../../../plugins/delivery/extensions/manifest/manifest.js'
import { storageOf } from '../../../../plugins/delivery/extensions/storage/storage.js'
import { stateMigration } from '../../../../plugins/delivery/extensions/tables.js'
import { ExtensionCrashLoop } from '../../../../plugins/delivery/subprocess-host/events.js'
import { type K, needs } from '../../../../plugins/delivery/subprocess-host/needs.js'
import { type ProcessHost, SubprocessRuntime } from '../../../../plugins/delivery/subprocess-host/runtime.js'
import { SubprocessHostService } from '../../../../plugins/delivery/subprocess-host/service.js'
import { SubprocessSettings } from '../../../../plugins/delivery/subprocess-host/settings.js'
import { sourceTable } from '../../../../plugins/delivery/subprocess-host/snapshots.js'
import daemon from '../../../../plugins/desk/daemon/index.js'
import resources from '../../../../plugins/platform/resources/index.js'
import { type BootOptions, boot, type TestKernel, temporaryFolder } from '../../../harness/kernel.js'

const CHILD = path.join(import.meta.dirname, 'child.mjs')

export const Layout = kind({ name: 'window_layout', spec: v.looseObject({}), maxBytes: 4 * 1024 * 1024 })

/** What a test's process does, as child.mjs reads it. */
export interface Ways {
  readonly at?: 'exit' | 'garbage' | 'silent' | 'initialize-host'
  readonly reply?: Readonly<Record<string, unknown>>
  readonly ignore?: readonly string[]
}

export interface Making {
  readonly name?: string
  readonly tier?: SourceTier
  readonly ways?: Ways
  readonly permissions?: readonly string[]
  readonly publish?: { readonly families: readonly string[]; readonly max_scope?: string }
  readonly subprocess?: Readonly<Record<string, unknown>>
  readonly limits?: Partial<ProcessHost['limits']>
  readonly workspace?: string
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
export type Answer = any

export interface Scene {
  readonly host: TestKernel
  readonly kernel: K
  /** An extension of its own folder whose process is child.mjs. */
  make(making?: Making): Promise<Made>
  /** An extension that lies in this folder. */
  run(root: string, manifest: Manifest, making?: Making): Made
  /** Extensions are stopped, then the kernel is closed. */
  close(): Promise<void>
}

export interface Made {
  readonly runtime: SubprocessRuntime
  readonly logs: LogRing
  readonly extension: InstalledExtension
  /** Has the process do something. */
  tell(what: string, more?: object): Promise<Answer>
  /** Has the process call the Host API; its answer, `{ result }` or `{ error }`. */
  ask(method: string, params?: unknown): Promise<Answer>
  /** Everything in the log ring, a line each. */
  said(): string
}

/** A kernel with a plugin in the place of the one that hosts extensions. */
export async function scene(options: Partial<BootOptions> = {}): Promise<Scene> {
  let kernel: K | undefined
  const owner = definePlugin({
    name: 'extensions',
    version: '1.0.0',
    requires: needs,
    service: async () =>
      class {
        constructor(own: K) {
          kernel = own
        }
      },
  }).surface({
    kinds: [Layout],
    events: [ExtensionCrashLoop],
    settings: Object.values(SubprocessSettings) as never,
    tables: [stateMigration],
    inherits: [sourceTable],
  })
  const { plugins = [], ...rest } = options
  const host = await boot({ ...rest, plugins: [daemon, resources, ...plugins, owner] })
  const made: SubprocessRuntime[] = []
  const folders: string[] = []
  const run = (root: string, manifest: Manifest, { tier = 'user', limits, workspace }: Making = {}): Made => {
    const { name, version } = manifest
    const extension: InstalledExtension = {
      name,
      key: keyOf(name, workspace ? { workspace } : undefined),
      version,
      root,
      manifest,
      enabled: true,
      state: 'active',
      tier,
      digest: '',
      ...(workspace ? { workspace } : {}),
    }
    const own = kernel as unknown as K
    const { host: base } = new SubprocessHostService(own)
    const logs = new LogRing('epoch', base.clock)
    const storage = storageOf(own, extension.key)
    const changed = { ...base, limits: { ...base.limits, ...limits } }
    const runtime = new SubprocessRuntime(changed, extension, { logs, storage })
    made.push(runtime)
    const tell = (action: string, more: object = {}) => runtime.call('tools/call', { do: action, ...more })
    const said = () =>
      logs
        .entries()
        .map(entry => entry.message)
        .join('\n')
    return { runtime, logs, extension, tell, ask: (method, params = {}) => tell('host', { method, params }), said }
  }
  return {
    host,
    kernel: kernel as unknown as K,
    run,
    async make(making = {}) {
      const root = await realpath(await temporaryFolder('extension'))
      folders.push(root)
      await cp(CHILD, path.join(root, 'child.mjs'))
      return run(root, manifestOf(root, making), making)
    },
    async close() {
      await Promise.all(made.map(runtime => runtime.stop({ deadlineMs: 0 })))
      await host.close()
      for (const folder of folders) await rm(folder, { recursive: true, force: true })
    },
  }
}

function manifestOf(
  root: string,
  { name = 'probe', ways = {}, permissions = [], publish, subprocess }: Making,
): Manifest {
  const value = {
    name,
    version: '1.2.3',
    capabilities: { provides: ['tool.provider'] },
    permissions: { requires: permissions },
    subprocess: {
      command: 'node',
      args: ['child.mjs', JSON.stringify(ways)],
      health_check_interval: '30s',
      ...subprocess,
    },
    ...(publish ? { resources: { publish } } : {}),
  }
  return parseManifest(JSON.stringify(value), `${root}/extension.json`)
}

/** Waits, in real time, until something holds; `step` goes between two looks. */
export async function until(what: () => boolean, step: () => unknown = () => {}): Promise<void> {
  const end = performance.now() + 60_000
  while (!what()) {
    if (performance.now() > end) throw new Error(`never: ${what}`)
    await step()
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}
