import type { PluginKernel } from '../../kernel/plugin.js'
import type { SessionInfo } from '../sessions/api.js'
import type { SpawnPoints, SpawnWish } from './api.js'

/** The hooks of spawned sessions, as {@link SpawnPoints} explains them. */
export class SpawnHooks implements SpawnPoints {
  readonly preCreate
  readonly created
  readonly parentStopped
  readonly ttlExpired
  readonly reaped

  constructor({ hooks }: Pick<PluginKernel, 'hooks'>) {
    this.preCreate = hooks.pipeline<SpawnWish, [SessionInfo]>('spawn.pre_create', { deadlineMs: 600_000 })
    this.created = hooks.notify<[string, SessionInfo]>('spawn.created')
    this.parentStopped = hooks.notify<[string]>('spawn.parent_stopped')
    this.ttlExpired = hooks.notify<[string]>('spawn.ttl_expired')
    this.reaped = hooks.notify<[string]>('spawn.reaped')
  }
}
