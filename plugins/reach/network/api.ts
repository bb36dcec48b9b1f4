import * as v from 'valibot'
import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import {
  defineErrors,
  event,
  hookTable,
  notify,
  pipeline,
  type TapsOf,
  type Tx,
  token,
} from '../../../kernel/plugin.js'
import type { Envelope } from '../../../schemas/network/messages.js'
import type {
  NetworkStatusReply,
  ParticipationRequest,
  ParticipationSource,
  ResolvedParticipation,
} from '../../../schemas/network.js'
import type { ParticipationOwner } from '../../work/sessions/api.js'
import type { Reason, Refusal } from './envelope.js'

export type { Reason, Refusal } from './envelope.js'
export { derivedChannel, directIdOf, MAX_BYTES, PROTOCOL, REASONS } from './envelope.js'
export type { MessageRow, PeerRow } from './tables.js'

/** A peer as other daemons know it. */
export interface RemotePeer {
  readonly peerId: string
  readonly name: string
}

/** A requested participation in a channel; `deny`, a reason in words, refuses it. */
export interface PreResolve {
  readonly deny?: string
  readonly owner: ParticipationOwner
  readonly workspaceId: string
  readonly taskId?: string | undefined
  readonly source: ParticipationSource
  /** The request with all bounds filled in. */
  readonly request: ParticipationRequest
}

/** Resolved network participation of an execution. */
export interface Resolved {
  readonly owner: ParticipationOwner
  readonly workspaceId: string | undefined
  readonly resolved: ResolvedParticipation
}

/** An event in a channel for hook programs, without message texts. */
export interface Happening {
  readonly workspace_id: string
  readonly channel: string
  readonly [member: string]: string | undefined
}

/** The hooks of the network. */
export const points = hookTable({
  persisted: notify<[seq: number]>('network.message_stored', 'A message is stored, durably.'),
  preResolve: pipeline<PreResolve>(
    'network.participation.pre_resolve',
    'Before an execution takes part in a channel. A tap may refuse it, or reduce the requested participation.',
    { deadlineMs: 600_000 },
  ),
  resolved: notify<[Resolved]>(
    'network.participation.resolved',
    'After it was decided, durably, how an execution takes part in the network.',
  ),
  messagePersisted: notify<[Happening]>('network.message.persisted', 'After a message was stored, durably.'),
  threadOpened: notify<[Happening]>('network.thread.opened', 'After the first message of a thread was stored.'),
  directOpened: notify<[Happening]>('network.direct_room.opened', 'After the direct room of two peers was made.'),
  peerJoined: notify<[Happening]>('network.peer.joined', 'After a peer joined a channel.'),
  peerLeft: notify<[Happening]>('network.peer.left', 'After a peer left a channel.'),
  workOpened: notify<[Happening]>('network.work.opened', 'After a message opened a piece of work.'),
  workTransitioned: notify<[Happening]>('network.work.transitioned', 'After the state of a piece of work changed.'),
  workClosed: notify<[Happening]>('network.work.closed', 'After a piece of work was completed, failed or canceled.'),
})

/** The hooks for events in a channel. */
export type HappeningName = Exclude<keyof typeof points, 'persisted' | 'preResolve' | 'resolved'>

/** An envelope between daemons. */
export type RemoteEnvelope = Envelope & {
  /** The two peers of a direct room instead of `direct_id`, which each daemon derives from its own workspace. */
  readonly direct_peers?: readonly string[]
}

/** A message of a session of this daemon, for a transport to other daemons. */
export interface OutgoingMessage {
  readonly seq: number
  readonly envelope: RemoteEnvelope
  /** For a direct room: the daemon of the other peer, which alone gets it; null: it stays within this daemon. */
  readonly only?: string | null
}

/** The network for other plugins; a transport between daemons reads outgoing messages and stores incoming ones. */
export interface NetworkApi extends TapsOf<typeof points> {
  readonly enabled: boolean
  /** The figures of its status route. */
  status(): NetworkStatusReply['network']
  /** Number of messages stored since a time in epoch milliseconds, in one workspace or all. */
  countSince(at: number, workspaceId?: string): number
  /** Messages of this daemon's sessions in a channel after a position in commit order, ascending. */
  sent(workspaceId: string, channel: string, after: number, limit: number): readonly OutgoingMessage[]
  /** Whether a session of this daemon sent a message; false also for deleted messages. */
  isSent(workspaceId: string, channel: string, id: string): boolean
  /** @throws Fault `channel_not_found` */
  checkChannel(workspaceId: string, channel: string): void
  /** Sessions of this daemon in a channel. */
  localPeers(workspaceId: string, channel: string): readonly RemotePeer[]
  /**
   * Stores a message of another daemon in the caller's transaction. The caller has verified the signature; all other
   * checks happen here.
   */
  receive(t: Tx, workspaceId: string, envelope: RemoteEnvelope, daemon: string): 'stored' | 'duplicate' | Refusal
  /** Sets the complete list of another daemon's peers in a channel: missing ones have left. */
  remotePeers(t: Tx, workspaceId: string, channel: string, daemon: string, peers: readonly RemotePeer[]): void
}

export const Network = token<NetworkApi>('network@1')

const about = v.object({
  workspace_id: v.string(),
  channel: v.string(),
  message_id: v.string(),
  kind: v.string(),
  from: v.string(),
  to: v.optional(v.string()),
  surface: v.optional(v.string()),
  container_id: v.optional(v.string()),
  work_id: v.optional(v.string()),
  /** Sessions that it wakes. */
  woken: v.optional(v.array(v.string())),
  /** Number of sessions that it does not wake, by reason. */
  skipped: v.optional(v.record(v.string(), v.number())),
})
/** A message between agents is stored. */
export const MessageStored = event('network.message.persisted', about)

/** A message of another daemon, or of a peer claiming to be one, was refused. */
export const MessageRefused = event(
  'network.message.refused',
  v.object({
    workspace_id: v.string(),
    channel: v.string(),
    from: v.string(),
    daemon: v.optional(v.string()),
    reason_code: v.string(),
    message: v.string(),
  }),
)

/** Two peers exceeded the message limit: both are stopped for a minute. */
export const PairStopped = event(
  'network.pair.stopped',
  v.object({ workspace_id: v.string(), channel: v.string(), peers: v.array(v.string()) }),
)

const channelsOf = command('network channels list')
const peersOf = command('network peers list')
const threadsOf = command('network threads list', placeholder('channel'))
const readAbout = 'read the schema: svc tool show service__network_send'

export const NetworkErrors = defineErrors({
  network_disabled: {
    status: 503,
    message: 'the network is off',
    next: command('config set', 'network.enabled', 'true'),
  },
  channel_not_found: { status: 404, message: 'no such channel', next: channelsOf },
  channel_exists: { status: 409, message: 'a channel with this name already exists', next: channelsOf },
  peer_not_found: { status: 404, message: 'no such peer', next: command('network peers list') },
  peer_absent: {
    status: 403,
    message: 'the session does not take part in this channel',
    next: command('network peers list'),
  },
  session_not_yours: { status: 403, message: 'an agent can send only for its own session' },
  conversation_not_found: {
    status: 404,
    message: 'no such thread or direct room',
    next: command('network threads list', placeholder('channel')),
  },
  network_subscription_not_found: {
    status: 404,
    message: 'the session has no subscription for this channel or thread',
    next: command('network subscriptions', placeholder('channel')),
  },
  tasks_unavailable: {
    status: 503,
    message: 'the plugin of tasks does not run',
    next: command('plugin show', 'tasks'),
  },
  network_message_not_found: { status: 404, message: 'no such message', next: command('network channels list') },
  network_position_unknown: { status: 422, message: 'the conversation has no such message to go on behind' },
  run_not_live: {
    status: 409,
    message: 'the run takes part in no channel',
    next: command('task run show', placeholder('run-id')),
  },
  coordination_invalid: {
    status: 422,
    message: 'the message is not valid',
    next: 'read the schema: svc tool show service__channel_send',
  },
  network_owner_uncharged: {
    status: 400,
    message: 'wakes cannot be charged to an owner of this kind',
    next: command('network usage', '--owner-kind', 'task_run'),
  },
  work_not_found: { status: 404, message: 'no such work', next: command('network channels list') },
  coordination_scope_invalid: {
    status: 400,
    message: 'scope and task_id do not match',
    next: command('network coordination status', '--help'),
  },
  coordination_scope_mismatch: {
    status: 403,
    message: 'the task or run belongs elsewhere',
    next: command('task list'),
  },
  coordination_conflict: {
    status: 409,
    message: 'the coordination record was changed meanwhile',
    next: command('network coordination status'),
  },
  wake_confirmation_required: {
    status: 400,
    message: 'this message would wake more than 3 sessions',
    next: 'send it again with confirm_wakes',
  },
  network_turn_restrained: { status: 403, message: 'a turn started by a message of another agent may not do this' },
  message_malformed: { status: 400, message: 'the message is not valid', next: readAbout },
  message_expired: { status: 400, message: 'the message has expired', next: readAbout },
  message_duplicate: { status: 409, message: 'another message has this id', next: readAbout },
  message_unsupported_kind: { status: 400, message: 'there is no such kind of message', next: readAbout },
  message_unsupported_profile: { status: 400, message: 'the message has another protocol version', next: readAbout },
  message_verification_failed: { status: 400, message: 'the signature of the message is not valid', next: readAbout },
  message_not_target: { status: 400, message: 'the message is not for a peer of this channel', next: peersOf },
  message_target_not_found: {
    status: 404,
    message: 'the peer that the message is for is not in the channel',
    next: peersOf,
  },
  message_busy: { status: 503, message: 'the network is busy', next: 'send it again in a minute' },
  message_internal: { status: 500, message: 'the message could not be stored', next: readAbout },
  message_invalid_surface: {
    status: 400,
    message: 'thread or direct room of the message does not match its kind',
    next: readAbout,
  },
  message_conversation_not_found: {
    status: 404,
    message: 'the thread or direct room of the message does not exist',
    next: threadsOf,
  },
  message_work_closed: { status: 409, message: 'the work of the message has ended', next: threadsOf },
  message_work_container_mismatch: {
    status: 409,
    message: 'the work of the message belongs elsewhere',
    next: threadsOf,
  },
  message_legacy_field_rejected: {
    status: 400,
    message: 'the message has a member that is no longer supported',
    next: readAbout,
  },
})

/** The error of each reason. */
export const REFUSED = {
  malformed: NetworkErrors.message_malformed,
  expired: NetworkErrors.message_expired,
  duplicate: NetworkErrors.message_duplicate,
  unsupported_kind: NetworkErrors.message_unsupported_kind,
  unsupported_profile: NetworkErrors.message_unsupported_profile,
  verification_failed: NetworkErrors.message_verification_failed,
  not_target: NetworkErrors.message_not_target,
  not_found: NetworkErrors.message_target_not_found,
  busy: NetworkErrors.message_busy,
  internal: NetworkErrors.message_internal,
  invalid_surface: NetworkErrors.message_invalid_surface,
  conversation_not_found: NetworkErrors.message_conversation_not_found,
  work_closed: NetworkErrors.message_work_closed,
  work_container_mismatch: NetworkErrors.message_work_container_mismatch,
  legacy_field_rejected: NetworkErrors.message_legacy_field_rejected,
} as const satisfies Readonly<Record<Reason, unknown>>
