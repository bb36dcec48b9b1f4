import * as v from 'valibot'
import { registry } from '../../../kernel/plugin.js'
import type { SecretSlot } from './bridge-kind.js'

/** The unit in which the limit of a text is counted: bytes of UTF-8, UTF-16 units, or code points. */
export type TextUnit = 'bytes' | 'utf16' | 'code_points'

/** Capabilities of a platform and its adapter. */
export interface BridgeCapabilities {
  /** Whether a sent message can be changed, so that an answer grows in place. */
  readonly edits: boolean
  /** Whether the adapter can find out if a message arrived after an attempt with an unknown result. */
  readonly canSettle: boolean
  /** The platform has threads below its rooms. */
  readonly threads: boolean
  /** Whether the platform verifies senders; without that, no person may answer permission questions. */
  readonly authenticatesSenders: boolean
  /** The platform has a typing indicator; see the event `typing`. */
  readonly typing?: boolean
  /** Longest text of one message. */
  readonly textLimit: number
  readonly textUnit: TextUnit
  /** Whether code fences are formatted, so that a split fence has to be closed and reopened. */
  readonly fences: boolean
}

/** A secret bound to a slot of an instance. Only the daemon and the adapter's process see it. */
export interface BoundSecret {
  readonly binding_name: string
  readonly kind: string
  readonly value: string
}

/** A bridge instance as its adapter sees it. */
export interface ManagedInstance {
  readonly id: string
  readonly displayName: string
  readonly platform: string
  readonly workspaceId?: string
  readonly providerConfig: Readonly<Record<string, unknown>>
  /** The policy for direct messages. The daemon applies it; an adapter may show it to people. */
  readonly dmPolicy: 'open' | 'allowlist' | 'pairing'
  readonly secrets: readonly BoundSecret[]
}

/** Address of a message; members that the platform lacks are absent. */
export interface BridgeAddress {
  readonly peer_id?: string
  readonly group_id?: string
  readonly thread_id?: string
}

/** A request to send or change one message of the platform, which is one part of an answer or of a notification. */
export interface DeliveryRequest {
  readonly bridge_instance_id: string
  /** Id of the whole answer, shared by its parts. */
  readonly delivery_id: string
  /** From 0. */
  readonly part: number
  /**
   * `start` and `final` without {@link remote_message_id} make a message; with one they change it. `resume` is a `delta` after a
   * restart. `typing` makes no message and has no text: the platform shows its typing indicator for some seconds; only for
   * {@link BridgeCapabilities.typing}. Only `start`, `delta`, `final`, `error` and `delete` reach an adapter without edits as `final` or `error`.
   */
  readonly event: 'start' | 'delta' | 'progress' | 'final' | 'error' | 'delete' | 'resume' | 'typing'
  readonly target: BridgeAddress
  /** The whole text of the part after this request. */
  readonly text: string
  /**
   * Identical for every attempt at a part, so that the platform or adapter can recognize the message. At most 64 of A-Za-z0-9_-.
   */
  readonly nonce: string
  readonly remote_message_id?: string
  readonly reply_to_message_id?: string
}

/**
 * The result of an attempt. `not_sent`: the message was certainly not sent, and the daemon tries again unless
 * `permanent`. An adapter that does not know throws or returns `unknown`.
 */
export type DeliveryResult =
  | { readonly status: 'delivered'; readonly remote_message_id?: string }
  | {
      readonly status: 'not_sent'
      readonly permanent: boolean
      readonly kind:
        | 'unknown_destination'
        | 'missing_token'
        | 'permission_denied'
        | 'unsupported_capability'
        | 'transient_delivery_failure'
      readonly message: string
      /** Given by the platform; authoritative. */
      readonly retry_after_ms?: number
    }
  | { readonly status: 'unknown'; readonly message: string }

/** The platform's answer about a message with an unknown result. */
export type SettleResult =
  | { readonly outcome: 'delivered'; readonly remote_message_id?: string }
  | { readonly outcome: 'absent' }
  /** `final`: the result will stay unknown, so a person has to decide; otherwise the question is repeated. */
  | { readonly outcome: 'unknown'; readonly final?: boolean }

/** A room or person that a platform knows. */
export interface SnapshotTarget extends BridgeAddress {
  readonly display_name: string
  /** `user`, `channel`, `group`, `thread` … */
  readonly target_type: string
  /** Distinguishes targets of the same name, for example by the name of their team. */
  readonly qualifier?: string
  readonly capabilities?: readonly string[]
}

/** The result of one check of an adapter. `remediation` is the next step when the check does not pass. */
export interface VerifyCheck {
  readonly check: string
  readonly status: 'pass' | 'warn' | 'fail' | 'skipped'
  readonly remediation: string
}

/** Findings of an adapter about an instance that it did not serve. */
export interface Examined {
  /** The last reported state; undefined: none within the time limit. */
  readonly state?: StateReport
  /** The checks of {@link BridgeProvider.verify}. */
  readonly checks: readonly VerifyCheck[]
}

/** State of an instance, as reported by its adapter. */
export interface StateReport {
  readonly status: 'starting' | 'ready' | 'degraded' | 'auth_required' | 'error'
  readonly reason?: 'auth_failed' | 'rate_limited' | 'webhook_invalid' | 'provider_timeout' | 'tenant_config_invalid'
  readonly message?: string
  /** Address for the platform's events, for an adapter with a listener. */
  readonly webhook_public_url?: string
}

/** A file that came with a message. */
export interface InboundAttachment {
  readonly name: string
  readonly mime_type: string
  /** Base64, at most 8 MiB decoded. */
  readonly data: string
}

/** An event of a platform, normalized by its adapter. */
export interface InboundEvent {
  readonly bridge_instance_id: string
  /** Equal for all repetitions of an event by the platform. */
  readonly idempotency_key: string
  readonly family: 'message' | 'edit' | 'command' | 'action' | 'reaction'
  readonly sender: {
    readonly id: string
    readonly username?: string
    readonly display_name?: string
    /** Whether the platform vouches for `id`. */
    readonly authenticated: boolean
    readonly is_bot?: boolean
  }
  readonly peer_id?: string
  readonly group_id?: string
  readonly thread_id?: string
  readonly message_id?: string
  readonly reply_to_message_id?: string
  readonly text?: string
  /** For an action: the pressed button, by the id that its message gave it. */
  readonly action_id?: string
  /** Whether the bot is addressed: a direct message, or the bot is named. */
  readonly addressed: boolean
  /** Whether a machine wrote it: an auto-responder, a mailing list or a bot. It is never answered. */
  readonly automatic?: boolean
  /** Epoch milliseconds of the platform. */
  readonly received_at?: number
  readonly attachments?: readonly InboundAttachment[]
}

/** Outcome of an inbound event. */
export interface IngestResult {
  readonly idempotency_key: string
  /** `duplicate`: the event is known already; `ignored`: it starts nothing, `reason` has the cause. */
  readonly outcome: 'prompted' | 'answered' | 'duplicate' | 'ignored'
  readonly session_id?: string
  readonly reason?: string
}

/** A late report of the platform about a message it accepted: a bounced mail, a phone that refuses it. */
export interface DeliveryReport {
  readonly bridge_instance_id: string
  /** Id that the adapter returned on delivery. */
  readonly remote_message_id: string
  readonly status: 'failed'
  /** For people; it may quote the platform. */
  readonly reason: string
}

/** Outcome of a {@link DeliveryReport}. */
export interface DeliveryReportResult {
  /** `unknown`: no message of the instance has the id any more, or it was reported before. */
  readonly outcome: 'recorded' | 'unknown'
}

/** API of the daemon for adapters. */
export interface BridgeHost {
  /** @throws Fault `bridge_not_found` for an instance of another extension */
  report(instanceId: string, state: StateReport): Promise<void>
  /**
   * Resolves when the event is durable; before that it does not count as received.
   * @throws Fault `bridge_not_accepting` (503, try again), `bridge_not_found`, `bridge_event_invalid` (400)
   */
  ingest(event: InboundEvent): Promise<IngestResult>
  /**
   * Resolves when the report is durable.
   * @throws Fault `bridge_not_accepting` (503, try again), `bridge_not_found`, `bridge_report_invalid` (400)
   */
  reportDelivery(report: DeliveryReport): Promise<DeliveryReportResult>
}

/**
 * Connects the daemon to one platform: a wrapper of an extension's process, or code of a plugin in the daemon. It gets
 * instances only while at least one of its extension is enabled.
 */
export interface BridgeProvider {
  /** Name of its extension, or of its plugin. */
  readonly extension: string
  readonly platform: string
  readonly displayName: string
  readonly description?: string
  readonly capabilities: BridgeCapabilities
  readonly secretSlots: readonly SecretSlot[]
  /** JSON Schema of `provider_config` as text, or a function that reads it. */
  readonly configSchema?: string | (() => Promise<string | undefined>)
  /** Replaces the set of running instances; an empty list stops it. Rejects when the adapter cannot be started. */
  manage(instances: readonly ManagedInstance[], host: BridgeHost): Promise<void>
  deliver(request: DeliveryRequest, signal: AbortSignal): Promise<DeliveryResult>
  targets(instanceId: string, signal: AbortSignal): Promise<readonly SnapshotTarget[]>
  /** Only where {@link BridgeCapabilities.canSettle}; `since` in epoch milliseconds. */
  settle?(request: DeliveryRequest & { readonly since: number }, signal: AbortSignal): Promise<SettleResult>
  verify?(instanceId: string, signal: AbortSignal): Promise<readonly VerifyCheck[]>
  /**
   * Tests an instance that it does not run, without serving it: no event is accepted, nothing is delivered, and nothing
   * continues afterwards. Rejects when the adapter cannot be started.
   */
  examine?(instance: ManagedInstance, signal: AbortSignal): Promise<Examined>
  registerWebhook?(instanceId: string, signal: AbortSignal): Promise<VerifyCheck>
}

/** Adapters in the daemon. */
export const BridgeProviders = registry<BridgeProvider>(
  'bridges.providers@1',
  v.looseObject({
    extension: v.string(),
    platform: v.string(),
    displayName: v.string(),
    manage: v.function(),
    deliver: v.function(),
    targets: v.function(),
  }),
)
