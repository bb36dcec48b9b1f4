import { type Contribution, faultOf, messageOf, type PluginKernel } from '../../../kernel/plugin.js'
import {
  type HostCall,
  type InstalledExtension,
  ownedProvisions,
  type ProcessNews,
  type ProvidedMembers,
  type Provision,
  type ProvisionOwner,
  ProvisionOwners,
} from '../extensions/api.js'

/** The provisions of processes, as their owning plugins contribute them. */
export class Provisions {
  constructor(private readonly kernel: Pick<PluginKernel, 'collect' | 'log'>) {}

  /** Whether the process has to run now: one of its provisions is needed, or it has none. */
  isNeeded(extension: InstalledExtension): boolean {
    const { provides } = extension.manifest.capabilities
    return provides.length === 0 || provides.some(one => this.#needs(one, extension))
  }

  /** Members of `runtime` for `initialize`, and the secrets in them. */
  async membersFor(extension: InstalledExtension): Promise<ProvidedMembers> {
    const parts = await Promise.all(this.#ownersFor(extension).map(({ entry }) => entry.runtime?.(extension)))
    return {
      members: Object.assign({}, ...parts.map(part => part?.members)),
      secrets: parts.flatMap(part => part?.secrets ?? []),
    }
  }

  /** Handler of a Host API method without a route; undefined while its plugin does not run. */
  methodOf(method: string): ((call: HostCall) => Promise<unknown>) | undefined {
    for (const { entry } of this.kernel.collect(ProvisionOwners)) {
      const { methods = {} } = entry
      if (Object.hasOwn(methods, method)) return methods[method]
    }
    return undefined
  }

  /** Notifies the owners of a process change. */
  tell(extension: InstalledExtension, news: ProcessNews): void {
    for (const { entry, owner } of this.#ownersFor(extension)) {
      try {
        entry.heard?.(extension, news)
      } catch (error) {
        this.kernel.log.error(`${owner} could not be notified of a process: ${messageOf(error)}`, {
          extension: extension.name,
          code: faultOf(error).code,
        })
      }
    }
  }

  #needs(provision: Provision, extension: InstalledExtension): boolean {
    const owner = this.kernel.collect(ProvisionOwners).find(({ entry }) => entry.provision === provision)
    if (owner) return owner.entry.isNeeded?.(extension) ?? true
    return !ownedProvisions.has(provision)
  }

  #ownersFor({ manifest }: InstalledExtension): readonly Contribution<ProvisionOwner>[] {
    const { provides } = manifest.capabilities
    return this.kernel.collect(ProvisionOwners).filter(({ entry }) => provides.includes(entry.provision))
  }
}
