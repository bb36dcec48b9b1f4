import * as v from 'valibot'
import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors, event, hookTable, notify, type TapsOf, type Tx, token } from '../../../kernel/plugin.js'
import type { BridgeTotals } from '../../../schemas/bridges.js'
import type { BridgeAddress, StateReport } from './adapter.js'

export * from './adapter.js'
export { BridgeInstanceKind, BridgeInstanceSpec, RoutingPolicy, routingProblem, SecretSlot } from './bridge-kind.js'
export { PAIR_MESSAGES, PAIR_MS, type Pace, PairLimit } from './inbound/pair-limit.js'

/** State of a bridge instance; its transitions are in `instances/states.ts`. */
export type BridgeStatus = 'disabled' | StateReport['status']

/** A bridge instance as other plugins see it. */
export interface BridgeInfo {
  readonly id: string
  readonly displayName: string
  readonly platform: string
  /** Name of the extension whose adapter serves it. */
  readonly extension: string
  /** Absent: it is global. */
  readonly workspaceId?: string
  readonly status: BridgeStatus
  /** It sends no notifications. */
  readonly notificationSuppress: boolean
  /** Target of messages without one; undefined: none. */
  readonly defaultTarget: BridgeAddress | undefined
}

/** State of one part of an outgoing message; its transitions are in `delivery/states.ts`. */
export type DeliveryState =
  | 'prepared'
  | 'queued'
  | 'send_attempt_started'
  | 'unknown_after_send'
  | 'delivered'
  | 'suppressed'
  | 'failed'

/** A message that is not an answer to a chat. */
export interface PostedMessage {
  readonly bridgeId: string
  /** At most one message is created per key, ever. */
  readonly key: string
  readonly target: BridgeAddress
  /** Markdown; names in it mention no one. */
  readonly text: string
  /** The author, for the list of deliveries: `preset:task_terminal`. */
  readonly source: string
  /** Id of the platform's message that it answers. */
  readonly replyTo?: string | undefined
  /** Epoch milliseconds after which it is listed as failed instead of sent; default: an hour from now. */
  readonly expiresAt?: number
}

/** State of a delivery: that of its least finished part. */
export interface DeliveryStanding {
  readonly state: DeliveryState
  /** Why it is suppressed or failed. */
  readonly reason?: string
}

/** A conversation of a chat, for messages to it. */
export interface ChatConversation {
  readonly target: BridgeAddress
  /** The newest message of a person in it. */
  readonly messageId: string
}

/** Result of a target lookup by name. */
export type FoundTarget =
  | { readonly route: string; readonly displayName: string }
  /** Routes and names of similar targets; several of the same name where `isAmbiguous`. */
  | { readonly candidates: readonly string[]; readonly isAmbiguous: boolean }

/** The hooks of bridges. */
export const points = hookTable({
  deliveryEnded: notify<[key: string, standing: DeliveryStanding]>(
    'bridges.delivery_ended',
    'A posted message is delivered, suppressed or failed, durably.',
  ),
})

/** Bridges for other plugins. */
export interface BridgesApi extends TapsOf<typeof points> {
  get(id: string): BridgeInfo | undefined
  list(): readonly BridgeInfo[]
  /**
   * Writes a message for delivery in the transaction of its cause. `known`: the key was used before; `suppressed`: the
   * instance sends no notifications; `missing`: there is no such instance. Nothing is written in these cases.
   */
  post(t: Tx, message: PostedMessage): 'queued' | 'known' | 'suppressed' | 'missing'
  /** Undefined: no message with the key, or it ended more than a week ago. */
  standing(key: string): DeliveryStanding | undefined
  /** Ids of messages with failed parts, which a person can resend or discard. */
  failedDeliveries(): ReadonlySet<string>
  /**
   * Parses a route such as `group:#ops` or `peer:alice`, with an optional `/thread`, to an address; undefined if
   * invalid. Names known to the instance's directory have to be resolved before.
   */
  parseRoute(route: string): BridgeAddress | undefined
  /** Finds a room or person by name in the instance's directory, and asks the platform if it is not there. */
  findTarget(bridgeId: string, name: string): Promise<FoundTarget>
  /** The conversation of an instance that prompts a session; undefined if there is none. */
  conversationOf(bridgeId: string, sessionId: string): ChatConversation | undefined
  /** Formats an address as a route for {@link parseRoute}. */
  routeOf(address: BridgeAddress): string
  totals(): BridgeTotals
}

export const Bridges = token<BridgesApi>('bridges@1')

const about = v.object({ bridge_id: v.string(), status: v.string(), message: v.optional(v.string()) })
/** A bridge serves its platform, for the first time or again. */
export const BridgeReady = event('bridge.ready', about)
/** A bridge serves its platform partially, or reconnects. */
export const BridgeDegraded = event('bridge.degraded', about)
/** A bridge waits for a secret, or the platform rejected the one it has. */
export const BridgeAuthRequired = event('bridge.auth_required', about)
/** A bridge was given up. */
export const BridgeFailed = event('bridge.error', about)
/** A message was given up; a person can send it again. */
export const BridgeDeliveryFailed = event(
  'bridge.delivery_failed',
  v.object({
    bridge_id: v.string(),
    delivery_id: v.string(),
    reason: v.string(),
    /** The author of the message, as in {@link PostedMessage.source}. */
    source: v.optional(v.string()),
  }),
)

export const BridgeErrors = defineErrors({
  bridge_not_found: { status: 404, message: 'no such bridge', next: command('bridge list') },
  bridge_invalid: { status: 400, message: 'the bridge is not valid', next: command('bridge create', '--help') },
  bridge_config_invalid: {
    status: 400,
    message: 'the settings of the platform are not valid',
    next: command('bridge providers', '--json'),
  },
  bridge_schema_unusable: {
    status: 503,
    message: 'the settings schema of the adapter cannot be used',
    next: command('extension list'),
  },
  bridge_read_only: {
    status: 409,
    message: 'this bridge comes from a package; only enabled can be changed here',
    next: command('bridge list'),
  },
  bridge_transition: {
    status: 409,
    message: 'the bridge cannot change from its current status to this one',
    next: command('bridge list'),
  },
  bridge_provider_not_found: {
    status: 404,
    message: 'no running extension provides this platform',
    next: command('bridge providers'),
  },
  bridge_binding_invalid: {
    status: 400,
    message: 'this cannot be bound to the secret slot',
    next: command('bridge secret-bindings list', placeholder('id')),
  },
  bridge_binding_not_found: { status: 404, message: 'this secret slot is not bound' },
  bridge_slot_unknown: {
    status: 404,
    message: 'the platform has no such secret slot',
    next: command('bridge providers'),
  },
  bridge_target_invalid: {
    status: 400,
    message: 'this is no target of the bridge',
    next: command('bridge targets', placeholder('id')),
  },
  bridge_target_unknown: { status: 404, message: 'no target has this name' },
  bridge_target_ambiguous: { status: 422, message: 'several targets have this name' },
  bridge_not_ready: { status: 409, message: 'the bridge is not ready', next: command('bridge list') },
  bridge_send_failed: { status: 409, message: 'the message was not sent', next: command('bridge list') },
  bridge_manifest_not_found: {
    status: 404,
    message: 'the platform has no manifest',
    next: command('bridge providers'),
  },
  bridge_not_accepting: {
    status: 503,
    message: 'the bridge takes no events now; send it again',
    next: command('bridge list'),
  },
  bridge_answer_invalid: {
    status: 500,
    message: 'the adapter sent an invalid reply',
    next: command('extension logs', placeholder('name')),
  },
  bridge_busy: {
    status: 409,
    message: 'messages of this bridge are still being delivered',
    next: command('bridge deliveries', placeholder('id')),
  },
  bridge_delivery_not_found: {
    status: 404,
    message: 'no such delivery',
    next: command('bridge deliveries', placeholder('id')),
  },
  bridge_delivery_not_failed: {
    status: 409,
    message: 'this delivery needs no decision',
    next: command('bridge deliveries', placeholder('id')),
  },
  bridge_delivery_text_gone: {
    status: 409,
    message: 'the text of this delivery is no longer stored',
    next: command('bridge discard', placeholder('id'), placeholder('delivery_id')),
  },
  bridge_event_invalid: { status: 400, message: 'not an event of a bridge', next: 'docs/bridges.md' },
  bridge_report_invalid: { status: 400, message: 'not a status of a bridge', next: 'docs/bridges.md' },
})
