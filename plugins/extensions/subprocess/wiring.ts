import type { PluginKernel } from '../../../kernel/plugin.js'
import type { Events } from '../../events/api.js'
import type { InstalledExtension } from '../api.js'
import type { LogRing } from '../load/log-ring.js'
import type { ExtensionRuntime } from '../load/runtime.js'
import type { Secrets } from '../secrets.js'
import { SubprocessRuntime, subprocessHost } from './index.js'

interface Wiring {
  readonly kernel: PluginKernel<{ events: typeof Events }>
  readonly secrets: Secrets
}

/** The process of an extension; one that a developer linked to a workspace publishes there alone. */
export function runtimeFor(
  { kernel, secrets }: Wiring,
  extension: InstalledExtension,
  logs: LogRing,
): ExtensionRuntime {
  const bound = () => secrets.references(extension)
  return new SubprocessRuntime(subprocessHost(kernel), extension, { logs, bound })
}
