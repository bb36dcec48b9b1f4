import * as v from 'valibot'
import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors, event, hookTable, notify, type TapsOf, type Tx, token } from '../../../kernel/plugin.js'
import type { BridgeTotals } from '../../../schemas/bridges.js'
import type { BridgeAddress, StateReport } from './adapter.js'

export * from './adapter.js'
export { BridgeInstanceKind, BridgeInstanceSpec, RoutingPolicy, routingProblem, SecretSlot } from './bridge-kind.js'
export { PAIR_MESSAGES, PAIR_MS, type Pace, PairLimit } from './inbound/pair-limit.js'

/** State of a bridge instance; the transitions stand in `instances/states.ts`. */
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
  /** Where a message goes that names no target; undefined: nowhere. */
  readonly defaultTarget: BridgeAddress | undefined
}

/** State of one part of a message on its way out; the transitions stand in `delivery/states.ts`. */
export type DeliveryState =
  | 'prepared'
  | 'queued'
  | 'send_attempt_started'
  | 'unknown_after_send'
  | 'delivered'
  | 'suppressed'
  | 'failed'

/** A message that no chat asked for. */
export interface PostedMessage {
  readonly bridgeId: string
  /** At most one message is made of each key, at any time. */
  readonly key: string
  readonly target: BridgeAddress
  /** Markdown; names in it mention no one. */
  readonly text: string
  /** Who posts it, for the list of deliveries: `preset:task_terminal`. */
  readonly source: string
  /** Message of the platform that it answers. */
  readonly replyTo?: string | undefined
  /** Epoch milliseconds after which it is listed instead of sent; default: an hour from now. */
  readonly expiresAt?: number
}

/** How a delivery stands: of its parts the one that is furthest from its end. */
export interface DeliveryStanding {
  readonly state: DeliveryState
  /** Why it is suppressed or failed. */
  readonly reason?: string
}

/** A conversation of a chat, as messages to it need it. */
export interface ChatConversation {
  readonly target: BridgeAddress
  /** The newest message of a person in it. */
  readonly messageId: string
}

/** Who or what of a bridge is called so. */
export type FoundTarget =
  | { readonly route: string; readonly displayName: string }
  /** Routes and names of those that come close; several of one name where `isAmbiguous`. */
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
   * Writes a message that is to be delivered into the transaction of its cause. `known`: the key has been used before;
   * `suppressed`: the instance sends no notifications; `missing`: there is no such instance. Nothing is written then.
   */
  post(t: Tx, message: PostedMessage): 'queued' | 'known' | 'suppressed' | 'missing'
  /** Undefined: no message was made of the key, or it ended more than a week ago. */
  standing(key: string): DeliveryStanding | undefined
  /** Ids of messages of which something was given up and waits for a person, who sends it again or discards it. */
  failedDeliveries(): ReadonlySet<string>
  /**
   * The address of a route as text, `group:#ops` or `peer:alice`, with `/thread` behind it; undefined for a text that is none.
   * A route that the directory of the instance knows under a name is resolved before.
   */
  parseRoute(route: string): BridgeAddress | undefined
  /** Asks the directory of an instance for a room or person by name, and the platform where the directory does not know it. */
  findTarget(bridgeId: string, name: string): Promise<FoundTarget>
  /** The conversation of an instance whose messages prompt a session; undefined where there is none. */
  conversationOf(bridgeId: string, sessionId: string): ChatConversation | undefined
  /** The text of {@link parseRoute}. */
  routeOf(address: BridgeAddress): string
  totals(): BridgeTotals
}

export const Bridges = token<BridgesApi>('bridges@1')

const about = v.object({ bridge_id: v.string(), status: v.string(), message: v.optional(v.string()) })
/** A bridge serves its platform, for the first time or again. */
export const BridgeReady = event('bridge.ready', about)
/** A bridge serves its platform in part, or tries to reach it again. */
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
    /** Who made the message, as in {@link PostedMessage.source}. */
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
    message: 'the adapter describes its settings by a schema that cannot be used',
    next: command('extension list'),
  },
  bridge_read_only: {
    status: 409,
    message: 'a package has this bridge; only enabled can be changed here',
    next: command('bridge list'),
  },
  bridge_transition: {
    status: 409,
    message: 'the bridge cannot get to this status from the one it has',
    next: command('bridge list'),
  },
  bridge_provider_not_found: {
    status: 404,
    message: 'no running extension has this platform',
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
  bridge_target_unknown: { status: 404, message: 'no target is called so' },
  bridge_target_ambiguous: { status: 422, message: 'several targets are called so' },
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
    message: 'the adapter answered in another form than it has to',
    next: command('extension logs', placeholder('name')),
  },
  bridge_busy: {
    status: 409,
    message: 'messages of this bridge are on their way',
    next: command('bridge deliveries', placeholder('id')),
  },
  bridge_delivery_not_found: {
    status: 404,
    message: 'no such delivery',
    next: command('bridge deliveries', placeholder('id')),
  },
  bridge_delivery_not_failed: {
    status: 409,
    message: 'nothing of this delivery waits for a person',
    next: command('bridge deliveries', placeholder('id')),
  },
  bridge_delivery_text_gone: {
    status: 409,
    message: 'the text of this delivery is not kept any more',
    next: command('bridge discard', placeholder('id'), placeholder('delivery_id')),
  },
  bridge_event_invalid: { status: 400, message: 'not an event of a bridge', next: 'docs/bridges.md' },
  bridge_report_invalid: { status: 400, message: 'not a status of a bridge', next: 'docs/bridges.md' },
})
