import type { InstalledExtension } from '../api.js'
import type { LogRing } from '../load/log-ring.js'
import type { ExtensionRuntime } from '../load/runtime.js'
import type { Secrets } from '../secrets.js'
import { type SubprocessKernel, SubprocessRuntime, subprocessHost } from './index.js'

interface Wiring {
  readonly kernel: SubprocessKernel
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
