import * as v from 'valibot'
import { registry } from '../../../kernel/plugin.js'
import type { SecretSlot } from './bridge-kind.js'

/** The unit in which the limit of a text is counted: bytes of UTF-8, UTF-16 units, or code points. */
export type TextUnit = 'bytes' | 'utf16' | 'code_points'

/** Capabilities of a platform and its adapter. */
export interface BridgeCapabilities {
  /** A message that was sent can be changed, so that an answer grows in place. */
  readonly edits: boolean
  /** The adapter can find out whether a message arrived whose sending has no known result. */
  readonly canSettle: boolean
  /** The platform has threads below its rooms. */
  readonly threads: boolean
  /** The platform itself says who a sender is; without it no person may answer permission questions. */
  readonly authenticatesSenders: boolean
  /** The platform has a typing indicator; see the event `typing`. */
  readonly typing?: boolean
  /** Longest text of one message. */
  readonly textLimit: number
  readonly textUnit: TextUnit
  /** Code fences mean something, so that one that a split cuts is closed and opened again. */
  readonly fences: boolean
}

/** A secret that is bound to a slot of an instance. It never leaves the daemon and the process of its adapter. */
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

/** Where a message goes; members that the platform does not have are absent. */
export interface BridgeAddress {
  readonly peer_id?: string
  readonly group_id?: string
  readonly thread_id?: string
}

/** A request to send or change one message of the platform, which is one part of an answer or of a notification. */
export interface DeliveryRequest {
  readonly bridge_instance_id: string
  /** Of the whole answer; its parts share it. */
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
  /** The whole text of the part as it has to read from now on. */
  readonly text: string
  /** The same at each attempt for one part; the platform or the adapter can recognize the message by it. At most 64 of A-Za-z0-9_-. */
  readonly nonce: string
  readonly remote_message_id?: string
  readonly reply_to_message_id?: string
}

/**
 * The result of an attempt. `not_sent`: the message was certainly not sent, and the daemon tries again unless `permanent`. An adapter
 * that does not know throws, or answers `unknown`.
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
      /** Of the platform; authoritative. */
      readonly retry_after_ms?: number
    }
  | { readonly status: 'unknown'; readonly message: string }

/** The answer of the platform about a message whose sending has no known result. */
export type SettleResult =
  | { readonly outcome: 'delivered'; readonly remote_message_id?: string }
  | { readonly outcome: 'absent' }
  /** `final`: nothing will be known later either, so that a person has to decide; otherwise it is asked again. */
  | { readonly outcome: 'unknown'; readonly final?: boolean }

/** A room or person that a platform knows. */
export interface SnapshotTarget extends BridgeAddress {
  readonly display_name: string
  /** `user`, `channel`, `group`, `thread` … */
  readonly target_type: string
  /** A text that tells targets of the same name apart, such as the name of their team. */
  readonly qualifier?: string
  readonly capabilities?: readonly string[]
}

/** The result of one check of an adapter. `remediation` is the next step when the check does not pass. */
export interface VerifyCheck {
  readonly check: string
  readonly status: 'pass' | 'warn' | 'fail' | 'skipped'
  readonly remediation: string
}

/** What an adapter found of an instance that it did not serve. */
export interface Examined {
  /** The state that it reported last; undefined: none in the time that it had. */
  readonly state?: StateReport
  /** As of {@link BridgeProvider.verify}. */
  readonly checks: readonly VerifyCheck[]
}

/** What an adapter reports of an instance. */
export interface StateReport {
  readonly status: 'starting' | 'ready' | 'degraded' | 'auth_required' | 'error'
  readonly reason?: 'auth_failed' | 'rate_limited' | 'webhook_invalid' | 'provider_timeout' | 'tenant_config_invalid'
  readonly message?: string
  /** Where the platform is to send its events, of an adapter with a listener. */
  readonly webhook_public_url?: string
}

/** A file that came with a message. */
export interface InboundAttachment {
  readonly name: string
  readonly mime_type: string
  /** Base64, at most 8 MiB decoded. */
  readonly data: string
}

/** Something that happened on a platform, normalized by its adapter. */
export interface InboundEvent {
  readonly bridge_instance_id: string
  /** The same for every repetition of one event by the platform. */
  readonly idempotency_key: string
  readonly family: 'message' | 'edit' | 'command' | 'action' | 'reaction'
  readonly sender: {
    readonly id: string
    readonly username?: string
    readonly display_name?: string
    /** The platform itself vouches for `id`. */
    readonly authenticated: boolean
    readonly is_bot?: boolean
  }
  readonly peer_id?: string
  readonly group_id?: string
  readonly thread_id?: string
  readonly message_id?: string
  readonly reply_to_message_id?: string
  readonly text?: string
  /** Of an action: what was pressed, as the message that offered it said. */
  readonly action_id?: string
  /** It is addressed to the bot: a direct message, or the bot is named. */
  readonly addressed: boolean
  /** A machine wrote it: an auto-responder, a mailing list, a bot that says so. Nothing answers it. */
  readonly automatic?: boolean
  /** Epoch milliseconds of the platform. */
  readonly received_at?: number
  readonly attachments?: readonly InboundAttachment[]
}

/** What becomes of an inbound event. */
export interface IngestResult {
  readonly idempotency_key: string
  /** `duplicate`: the event was there before; `ignored`: it starts nothing, `reason` says why. */
  readonly outcome: 'prompted' | 'answered' | 'duplicate' | 'ignored'
  readonly session_id?: string
  readonly reason?: string
}

/** What a platform says of a message later than of its sending: a mail that comes back, a phone that does not take it. */
export interface DeliveryReport {
  readonly bridge_instance_id: string
  /** As the adapter answered it when the message was delivered. */
  readonly remote_message_id: string
  readonly status: 'failed'
  /** For people; it may hold words of the other side. */
  readonly reason: string
}

/** What becomes of a {@link DeliveryReport}. */
export interface DeliveryReportResult {
  /** `unknown`: no message of the instance has the id any more, or it was reported before. */
  readonly outcome: 'recorded' | 'unknown'
}

/** What adapters are given of the daemon. */
export interface BridgeHost {
  /** @throws Fault `bridge_not_found` for an instance of another extension */
  report(instanceId: string, state: StateReport): Promise<void>
  /**
   * Resolves when the event is durable: only then it counts as seen.
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
 * Connects the daemon to one platform: the process of an extension behind the protocol of processes, or code in the daemon that a
 * plugin contributes. It is told of instances only while at least one of its extension is enabled.
 */
export interface BridgeProvider {
  /** Name of its extension, or of its plugin. */
  readonly extension: string
  readonly platform: string
  readonly displayName: string
  readonly description?: string
  readonly capabilities: BridgeCapabilities
  readonly secretSlots: readonly SecretSlot[]
  /** JSON Schema of `provider_config`, as text, or what reads it. */
  readonly configSchema?: string | (() => Promise<string | undefined>)
  /** Replaces all instances that it runs; an empty list ends it. Rejects when the adapter cannot be started. */
  manage(instances: readonly ManagedInstance[], host: BridgeHost): Promise<void>
  deliver(request: DeliveryRequest, signal: AbortSignal): Promise<DeliveryResult>
  targets(instanceId: string, signal: AbortSignal): Promise<readonly SnapshotTarget[]>
  /** Only where {@link BridgeCapabilities.canSettle}; `since` in epoch milliseconds. */
  settle?(request: DeliveryRequest & { readonly since: number }, signal: AbortSignal): Promise<SettleResult>
  verify?(instanceId: string, signal: AbortSignal): Promise<readonly VerifyCheck[]>
  /**
   * Tries an instance that it does not run, without serving it: no event is taken, nothing is delivered, and nothing of it goes on
   * afterwards. Rejects when the adapter cannot be started.
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
