import type { PluginKernel } from '../../../kernel/plugin.js'
import type { InstalledExtension } from '../api.js'
import type { DevLinks } from '../dev.js'
import type { ExtensionRuntime } from '../runtime.js'
import type { Secrets } from '../secrets.js'
import { SubprocessRuntime, subprocessHost } from './index.js'

interface Wiring {
  readonly kernel: PluginKernel
  readonly dev: DevLinks
  readonly secrets: Secrets
}

/** The process of an extension; one that a developer linked to a workspace publishes there alone. */
export function runtimeFor({ kernel, dev, secrets }: Wiring, extension: InstalledExtension): ExtensionRuntime {
  const { name, tier } = extension
  const workspace = tier === 'workspace' ? dev.linkOf(name)?.workspace : undefined
  return new SubprocessRuntime(subprocessHost(kernel), extension, {
    ...(workspace ? { workspace } : {}),
    bound: () => secrets.references(name, workspace),
  })
}
