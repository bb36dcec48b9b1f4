import { realpath } from 'node:fs/promises'
import { definePlugin, type Fault, type Gate, type Notify, type PluginKernel } from '../../../../kernel/plugin.js'
import {
  Extensions,
  type ExtensionsApi,
  type InstalledExtension,
  readManifest,
} from '../../../../plugins/delivery/extensions/api.js'
import { Families } from '../../../../plugins/delivery/extensions/load/families.js'
import { sourceTable } from '../../../../plugins/delivery/subprocess-host/snapshots.js'
import { Reconcile } from '../../../../plugins/platform/reconcile/api.js'

/** What a test makes of the extensions that there are. */
export interface FakeExtensions extends Pick<ExtensionsApi, 'installed'> {
  /** What was left out of the extension that was loaded last. */
  readonly leftOut: readonly string[]
  /** Reads the manifest of a folder and has its families read it; throws what they throw. */
  load(folder: string): Promise<void>
  /** Asks who depends on it, then lets it go. */
  disable(name: string): Promise<Fault | undefined>
  /** Waits until no record waits for a pass. */
  quiet(): Promise<void>
  /** Lets it go, whoever depends on it: its folder was taken away. */
  unload(name: string): Promise<void>
}

const needs = { reconcile: Reconcile }

/** A plugin in the place of `extensions` that loads what it is told to. */
export function fakeExtensions() {
  const seen = {} as { service: Service }
  class Service implements ExtensionsApi, FakeExtensions {
    readonly changed: Notify<[readonly string[]]>
    readonly disabling: Gate<[string]>
    readonly #families: Families
    readonly #all = new Map<string, InstalledExtension>()

    constructor(private readonly kernel: PluginKernel<typeof needs>) {
      this.changed = kernel.hooks.notify('changed')
      this.disabling = kernel.hooks.gate('disabling')
      this.#families = new Families(kernel)
      seen.service = this
    }

    installed() {
      return [...this.#all.values()]
    }

    async shown(): Promise<never> {
      throw new Error('no extension is shown')
    }

    storageOf(name: string): never {
      throw new Error(`${name} keeps nothing`)
    }

    isLoading() {
      return false
    }

    async settled() {}

    owner(name: string) {
      return { name, confined: false }
    }

    async call(name: string): Promise<never> {
      throw new Error(`${name} has no process`)
    }

    async control(name: string): Promise<never> {
      throw new Error(`${name} has no process`)
    }

    implements() {
      return false
    }

    bundled = () => []
    async reconsider() {}

    async restart() {}

    leftOut: readonly string[] = []

    async load(folder: string) {
      const root = await realpath(folder)
      const manifest = await readManifest(root)
      const { name, version } = manifest
      const state = 'active' as const
      const extension = {
        name,
        key: name,
        version,
        root,
        manifest,
        enabled: true,
        state,
        tier: 'user' as const,
        digest: '',
      }
      this.#all.set(name, extension)
      const shipped = await this.#families.read(extension)
      this.leftOut = shipped.flatMap(({ shipment }) => shipment.leftOut ?? [])
      await this.#families.publish(extension, shipped)
      await this.#families.sweep(new Set(this.#all.keys()), [])
      await this.changed.call([name])
    }

    async quiet() {
      while (this.kernel.needs.reconcile.health().some(({ pending }) => pending > 0))
        await new Promise(resolve => setTimeout(resolve, 1))
    }

    async disable(name: string) {
      const refused = await this.disabling.ask(name)
      if (!refused) await this.unload(name)
      return refused
    }

    async unload(name: string) {
      this.#all.delete(name)
      await this.#families.withdraw({ name, key: name })
      await this.changed.call([name])
    }
  }
  const plugin = definePlugin({
    name: 'extensions',
    version: '0.0.0',
    requires: needs,
    provides: Extensions,
    service: async () => Service,
  }).surface({ inherits: [sourceTable] })
  return { plugin, extensions: () => seen.service as FakeExtensions }
}
