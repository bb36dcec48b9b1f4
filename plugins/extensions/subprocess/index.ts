/** Processes of extensions, in any language: what the host of extensions needs of them. */
import type { SubprocessHost, SubprocessKernel } from './runtime.js'
import { SubprocessSettings } from './settings.js'

export { ExtensionCrashLoop } from './events.js'
export { type SubprocessHost, type SubprocessKernel, SubprocessRuntime } from './runtime.js'
export { type SubprocessLimits, SubprocessSettings } from './settings.js'

/** What processes need of the daemon, from the kernel of the plugin that owns {@link SubprocessSettings}. */
export function subprocessHost(kernel: SubprocessKernel): SubprocessHost {
  const { clock, ids, log, db, records, needs, env, request } = kernel
  const limits = {
    allowedKinds: kernel.setting(SubprocessSettings.allowedKinds),
    maxScope: kernel.setting(SubprocessSettings.maxScope),
    snapshotRate: kernel.setting(SubprocessSettings.snapshotRate),
    escalation: kernel.setting(SubprocessSettings.escalation),
  }
  return {
    clock,
    ids,
    log,
    db,
    records,
    needs,
    env,
    request,
    version: kernel.host.version,
    limits,
  }
}
