/** Processes of extensions in any language, for the extensions plugin. */
import { HealthEscalation } from '../../../desk/daemon/api.js'
import type { SubprocessKernel } from '../needs.js'
import type { SubprocessHost } from './runtime.js'
import { SubprocessSettings } from './settings.js'

export type { SubprocessKernel } from '../needs.js'
export { ExtensionCrashLoop } from './events.js'
export { type SubprocessHost, SubprocessRuntime } from './runtime.js'
export { type SubprocessLimits, SubprocessSettings } from './settings.js'

/** The host of processes, from the kernel of the plugin that owns {@link SubprocessSettings}. */
export function subprocessHost(kernel: SubprocessKernel): SubprocessHost {
  const { clock, ids, log, db, records, needs, env, collect, name, home } = kernel
  const limits = {
    callTimeout: kernel.config.get(SubprocessSettings.callTimeout),
    allowedKinds: kernel.config.get(SubprocessSettings.allowedKinds),
    maxScope: kernel.config.get(SubprocessSettings.maxScope),
    snapshotRate: kernel.config.get(SubprocessSettings.snapshotRate),
    escalation: kernel.config.get(HealthEscalation),
  }
  const own = { clock, ids, log, db, records, needs, env, collect, name, home }
  return { ...own, limits }
}
