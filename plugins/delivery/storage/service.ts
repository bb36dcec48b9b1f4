import type { Host, PluginKernel } from '../../../kernel/plugin.js'
import type { ExtensionStorage, Extensions } from '../extensions/api.js'

/** Hands each plugin the storage of its extension. */
export class StorageService {
  constructor(private readonly kernel: PluginKernel<{ host: typeof Host; extensions: typeof Extensions }>) {}

  /** A replacement has storage under its own name, which is removed with it. */
  of(name: string): ExtensionStorage {
    const { host, extensions } = this.kernel.needs
    const own = host.plugins().find(plugin => plugin.name === name)?.replacedBy
    return extensions.storageOf(own ?? name)
  }
}
