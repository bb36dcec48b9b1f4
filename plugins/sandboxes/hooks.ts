import type { PluginKernel } from '../../kernel/plugin.js'
import type { SessionInfo } from '../sessions/api.js'
import type { SandboxPoints, SandboxWish } from './api.js'

/** The hooks of sandboxes, as {@link SandboxPoints} explains them. */
export class SandboxHooks implements SandboxPoints {
  readonly prepare
  readonly ready
  readonly stop

  constructor({ hooks }: Pick<PluginKernel, 'hooks'>) {
    this.prepare = hooks.pipeline<SandboxWish, [SessionInfo]>('sandbox.prepare', { deadlineMs: 600_000 })
    this.ready = hooks.notify<[SandboxWish, SessionInfo]>('sandbox.ready')
    this.stop = hooks.notify<[SessionInfo]>('sandbox.stop')
  }
}
