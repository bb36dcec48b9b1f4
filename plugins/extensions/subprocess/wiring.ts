import type { PluginKernel } from '../../../kernel/plugin.js'
import type { InstalledExtension } from '../api.js'
import type { ExtensionRuntime } from '../runtime.js'
import type { Secrets } from '../secrets.js'
import { SubprocessRuntime, subprocessHost } from './index.js'

interface Wiring {
  readonly kernel: PluginKernel
  readonly secrets: Secrets
}

/** The process of an extension; one that a developer linked to a workspace publishes there alone. */
export function runtimeFor({ kernel, secrets }: Wiring, extension: InstalledExtension): ExtensionRuntime {
  const { name, workspace } = extension
  return new SubprocessRuntime(subprocessHost(kernel), extension, {
    ...(workspace ? { workspace } : {}),
    bound: () => secrets.references(name, workspace),
  })
}
