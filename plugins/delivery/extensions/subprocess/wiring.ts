import type { InstalledExtension } from '../api.js'
import type { Owner } from '../consent/owner.js'
import { isLink } from '../identity.js'
import type { LogRing } from '../load/log-ring.js'
import type { ExtensionRuntime } from '../load/runtime.js'
import type { Consent } from '../manifest/permissions.js'
import type { Secrets } from '../secrets.js'
import { type SubprocessKernel, SubprocessRuntime, subprocessHost } from './index.js'

interface Wiring {
  readonly kernel: SubprocessKernel
  readonly secrets: Secrets
  owner(key: string): Owner
  /** The operator's consents to an installed extension. */
  consentsOf(name: string): readonly Consent[]
}

/** Creates the process of an extension; one that is linked to a workspace publishes only there. */
export function runtimeFor(service: Wiring, extension: InstalledExtension, logs: LogRing): ExtensionRuntime {
  const { kernel, secrets } = service
  const bound = () => secrets.references(extension)
  const consents = () => (isLink(extension.key) ? [] : service.consentsOf(extension.name))
  const confined = () => service.owner(extension.key).confined
  return new SubprocessRuntime(subprocessHost(kernel), extension, { logs, bound, confined, consents })
}
