/** Processes of extensions, in any language: what the host of extensions needs of them. */
import type { PluginKernel } from '../../../kernel/plugin.js'
import type { Events } from '../../events/api.js'
import type { SubprocessHost } from './runtime.js'
import { SubprocessSettings } from './settings.js'

export { ExtensionCrashLoop } from './events.js'
export { type SubprocessHost, SubprocessRuntime } from './runtime.js'
export { type SubprocessLimits, SubprocessSettings } from './settings.js'

/** What processes need of the daemon, from the kernel of the plugin that owns {@link SubprocessSettings}. */
export function subprocessHost(kernel: PluginKernel<{ events: typeof Events }>): SubprocessHost {
  const { clock, ids, log, db, records, needs, env, spawn, request } = kernel
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
    spawn,
    request,
    version: kernel.host.version,
    limits,
  }
}
