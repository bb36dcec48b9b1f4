/** `svc/plugins/self-service`: information for agents about themselves, and the sessions they start. */

import * as v from 'valibot'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors, hookTable, notify, pipeline, registry, type TapsOf, token } from '../../../kernel/plugin.js'
import type { AgentContextReply } from '../../../schemas/sessions/self-service.js'
import type { PermissionPolicy } from '../../../schemas/sessions.js'
import type { CoordinationChannel, TaskLease, TaskSituation } from '../../../schemas/tasks.js'
import type { Deniable, SessionInfo } from '../../work/sessions/api.js'

const next = command('whoami')

export const SpawnErrors = defineErrors({
  spawn_depth_exceeded: { status: 403, message: 'a spawned session cannot spawn sessions', next },
  spawn_rights_exceeded: { status: 403, message: 'a child cannot have a right that its parent lacks', next },
  spawn_foreign: { status: 403, message: 'an agent can read only its own session and workspace', next },
  spawn_children_exceeded: { status: 409, message: 'this session has the maximum number of children', next },
  spawn_parent_stopped: { status: 409, message: 'a session that is not active cannot spawn sessions', next },
  spawn_key_conflict: { status: 409, message: 'this idempotency key was used for another spawn', next },
  spawn_ended: { status: 409, message: 'the lifetime of this spawned session has expired', next: 'spawn another one' },
  spawn_invalid: { status: 422, message: 'this session cannot be spawned', next: command('spawn', '--help') },
})

/** A child session requested by another one. */
export interface SpawnWish extends Deniable {
  readonly agentName: string
  /** Role of the child, given by its parent. */
  readonly role: string
  /** May be reduced by a tap; checked afterwards against the parent's rights. */
  readonly permissions: PermissionPolicy
}

/** The hooks of spawned sessions, named after the events of hook programs. */
export const points = hookTable({
  preCreate: pipeline<SpawnWish, [parent: SessionInfo]>(
    'spawn.pre_create',
    'Before an agent spawns a child session. A tap may refuse the child, or give it fewer rights.',
    { deadlineMs: 600_000 },
  ),
  created: notify<[child: string, parent: SessionInfo]>('spawn.created', 'After a child session was created.'),
  parentStopped: notify<[child: string]>(
    'spawn.parent_stopped',
    'When a child session is stopped because its parent stopped.',
  ),
  ttlExpired: notify<[child: string]>('spawn.ttl_expired', 'When the time to live of a child session expired.'),
  reaped: notify<[child: string]>('spawn.reaped', 'After a child session with an expired time to live stopped.'),
})
export type SpawnPoints = TapsOf<typeof points>

/** Contributes the work of a session, for its agent's view of itself. */
export interface HeldWorkSource {
  /** Maximum leases of one session. */
  readonly mostLeases: number
  readonly leases: (session: SessionInfo) => readonly TaskLease[]
  readonly situation: (session: SessionInfo) => TaskSituation
}

export const HeldWork = registry<HeldWorkSource>(
  'self-service.held-work@1',
  v.looseObject({ mostLeases: v.number(), leases: v.function(), situation: v.function() }),
)

export const Spawning = token<{ readonly points: SpawnPoints }>('self-service@1')

type Context = AgentContextReply['context']

/** Channels, inbox and peers of a session, contributed for the context that its agent reads. */
export interface CompanySource {
  /** Channels that it takes part in. */
  readonly channels: (session: SessionInfo) => readonly CoordinationChannel[]
  /** The oldest waiting messages and their total number. */
  readonly inbox: (session: SessionInfo, limit: number) => Pick<Context['inbox_summary'], 'items' | 'unread_count'>
  /** Other peers in its channels, and whether the list is truncated. */
  readonly peers: (
    session: SessionInfo,
    limit: number,
  ) => { readonly peers: Context['peer_roster']['peers']; readonly isTruncated: boolean }
}

export const Company = registry<CompanySource>(
  'self-service.company@1',
  v.looseObject({ channels: v.function(), inbox: v.function(), peers: v.function() }),
)
