import path from 'node:path'
import { faultOf, type PluginKernel } from '../../../../kernel/plugin.js'
import type { InstalledExtension } from '../api.js'
import type { Instance } from '../load/instance.js'
import { packageRoot } from '../load/package.js'
import type { Catalog, Found } from './catalog.js'

/** The part of the extensions service that the bundled extensions use. */
export interface BundledHost {
  readonly make: (name: string, found: Found) => Instance
  readonly take: (instance: Instance, found: Found) => Promise<void>
  /** Whether an extension of that name is in the home, which takes precedence. */
  readonly isInstalled: (name: string) => boolean
}

/**
 * Extensions that ship with the daemon, in a folder of its package. Their manifests are read once; an extension is
 * loaded when it is first needed, so that unused ones cost no process and no file access.
 */
export class BundledExtensions {
  /** The folder with one folder per extension. */
  readonly dir = path.join(packageRoot(), 'dist', 'extensions')
  readonly #instances = new Map<string, Instance>()

  constructor(
    private readonly kernel: Pick<PluginKernel, 'log'>,
    private readonly catalog: Catalog,
    private readonly host: BundledHost,
  ) {}

  /** Reads the manifests. An unreadable one is left out, and the log says why. */
  async read(): Promise<void> {
    for (const name of await this.catalog.folders(this.dir)) {
      const found = await this.catalog.read(path.join(this.dir, name))
      if (found && 'fault' in found)
        this.kernel.log.error(`the bundled extension ${name} cannot be read: ${found.fault.message}`)
      else if (found) this.#instances.set(name, this.host.make(name, found))
    }
  }

  get(name: string): Instance | undefined {
    return this.host.isInstalled(name) ? undefined : this.#instances.get(name)
  }

  /** Extensions that were needed, or disabled. */
  used(): Instance[] {
    return this.#those(({ status }) => status !== 'enabled')
  }

  /** Extensions that are available and not loaded. */
  unused(): InstalledExtension[] {
    return this.#those(({ status }) => status === 'enabled').flatMap(({ installed }) => installed ?? [])
  }

  /** Loads an extension once; resolves also on failure, which sets its status. */
  async load(name: string): Promise<void> {
    const instance = this.get(name)
    if (instance?.enabled && !instance.generation) await this.host.take(instance, instance.found)
  }

  /** Unloads an extension, for one of the same name in the home. */
  async giveWay(name: string): Promise<void> {
    await this.#instances
      .get(name)
      ?.unload()
      .catch(error => this.kernel.log.error(faultOf(error).message, { extension: name }))
  }

  #those(wanted: (instance: Instance) => boolean): Instance[] {
    return [...this.#instances.values()].filter(instance => wanted(instance) && !this.host.isInstalled(instance.name))
  }
}
