/** `svc/plugins/self-service`: what an agent asks about itself, and the sessions that it starts. */
import { defineErrors, type Hook, registry, token } from '../../kernel/plugin.js'
import type { PermissionPolicy } from '../../schemas/sessions.js'
import type { TaskLease, TaskSituation } from '../../schemas/tasks.js'
import type { Deniable, SessionInfo } from '../sessions/api.js'

const next = 'svc whoami'

export const SpawnErrors = defineErrors({
  spawn_depth_exceeded: { status: 403, message: 'a spawned session starts no further ones', next },
  spawn_rights_exceeded: { status: 403, message: 'a child has no right that its parent lacks', next },
  spawn_foreign: { status: 403, message: 'an agent asks about its own session and workspace only', next },
  spawn_children_exceeded: { status: 409, message: 'this session has as many children as it may have', next },
  spawn_parent_stopped: { status: 409, message: 'a session that is not active starts no further ones', next },
  spawn_key_conflict: { status: 409, message: 'this idempotency key is bound to another spawn', next },
  spawn_ended: { status: 409, message: 'the time of this spawned session is over', next: 'spawn another one' },
  spawn_invalid: { status: 422, message: 'this session cannot be spawned', next: 'svc spawn --help' },
})

/** A child that a session wants to start. */
export interface SpawnWish extends Deniable {
  readonly agentName: string
  /** Of the child, as its parent calls it. */
  readonly role: string
  /** May be narrowed; it is checked afterwards against what the parent has. */
  readonly permissions: PermissionPolicy
}

/** Points at which others hear of spawned sessions, named after the events that programs hook. */
export interface SpawnPoints {
  /** `spawn.pre_create`: a child may be refused, or given fewer rights. */
  readonly preCreate: Hook<
    (wish: SpawnWish, parent: SessionInfo) => SpawnWish | undefined | Promise<SpawnWish | undefined>
  >
  /** `spawn.created`: a child is stored. */
  readonly created: Hook<(child: string, parent: SessionInfo) => unknown>
  /** `spawn.parent_stopped`: a child is stopped because its parent has stopped. */
  readonly parentStopped: Hook<(child: string) => unknown>
  /** `spawn.ttl_expired`: the time of a child is over. */
  readonly ttlExpired: Hook<(child: string) => unknown>
  /** `spawn.reaped`: a child whose time was over has stopped. */
  readonly reaped: Hook<(child: string) => unknown>
}

/** Contributes what a session works on, for the picture that its agent gets of itself. */
export interface HeldWorkSource {
  /** Leases that one session may have at once. */
  readonly mostLeases: number
  readonly leases: (session: SessionInfo) => readonly TaskLease[]
  readonly situation: (session: SessionInfo) => TaskSituation
}

export const HeldWork = registry<HeldWorkSource>('self-service.held-work@1')

export const Spawning = token<{ readonly points: SpawnPoints }>('self-service@1')
