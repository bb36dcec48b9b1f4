import path from 'node:path'
import { faultOf, type PluginKernel } from '../../../../kernel/plugin.js'
import type { InstalledExtension } from '../api.js'
import type { Instance } from '../load/instance.js'
import { packageRoot } from '../load/package.js'
import type { Catalog, Found } from './catalog.js'

/** What the bundled extensions need of the service. */
export interface BundledHost {
  readonly make: (name: string, found: Found) => Instance
  readonly take: (instance: Instance, found: Found) => Promise<void>
  /** An extension of that name is in the home, which comes first. */
  readonly isInstalled: (name: string) => boolean
}

/**
 * Extensions that come with the daemon, in a folder of its package. Their manifests are read once; one is loaded when something
 * of it is needed for the first time, so that unused ones cost neither a process nor a look at their files.
 */
export class BundledExtensions {
  /** The folder that holds a folder for each. */
  readonly dir = path.join(packageRoot(), 'dist', 'extensions')
  readonly #instances = new Map<string, Instance>()

  constructor(
    private readonly kernel: Pick<PluginKernel, 'log'>,
    private readonly catalog: Catalog,
    private readonly host: BundledHost,
  ) {}

  /** Reads which there are. One that cannot be read is left out, and the log says why. */
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

  /** Those that were needed, and those that were switched off. */
  used(): Instance[] {
    return this.#those(({ status }) => status !== 'enabled')
  }

  /** Manifests of those that could be used and are not. */
  unused(): InstalledExtension[] {
    return this.#those(({ status }) => status === 'enabled').flatMap(({ installed }) => installed ?? [])
  }

  /** Loads it unless it is; resolves also when it fails, which its status says then. */
  async load(name: string): Promise<void> {
    const instance = this.get(name)
    if (instance?.enabled && !instance.generation) await this.host.take(instance, instance.found)
  }

  /** An extension of the home takes the name. */
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
