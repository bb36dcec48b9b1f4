/** Destination or origin of a message; members that the platform lacks are absent. */
export interface Address {
  readonly peer_id?: string
  readonly group_id?: string
  readonly thread_id?: string
}

/** A bridge instance as given to its adapter. */
export interface Instance {
  readonly id: string
  readonly displayName: string
  readonly platform: string
  /** Absent for a global instance. */
  readonly workspaceId?: string
  readonly dmPolicy: string
  readonly config: Readonly<Record<string, unknown>>
  /** The value bound to a slot of the manifest; undefined: none. */
  secret(slot: string): string | undefined
}

/** A message to send or change on the platform. */
export interface Delivery {
  readonly bridge_instance_id: string
  /** Id of the whole answer, shared by its parts. */
  readonly delivery_id: string
  /** From 0. */
  readonly part: number
  /**
   * `start` and `final` create a message, or change {@link remote_message_id} if it is set. `typing` creates none: it shows a
   * typing indicator, and is sent only if the manifest has `typing = true`.
   */
  readonly event: 'start' | 'delta' | 'progress' | 'final' | 'error' | 'delete' | 'resume' | 'typing'
  readonly target: Address
  /** The complete new text of the part. */
  readonly text: string
  /** Identical in each attempt for one part. At most 64 of A-Za-z0-9_-. */
  readonly nonce: string
  readonly remote_message_id?: string
  readonly reply_to_message_id?: string
}

/** Why a message was not sent. */
export type NotSentKind =
  | 'unknown_destination'
  | 'missing_token'
  | 'permission_denied'
  | 'unsupported_capability'
  | 'transient_delivery_failure'

/** The outcome of a {@link Delivery}. `not_sent`: certainly not sent; retried unless `permanent`. */
export type DeliveryResult =
  | { readonly status: 'delivered'; readonly remote_message_id?: string }
  | {
      readonly status: 'not_sent'
      readonly permanent: boolean
      readonly kind: NotSentKind
      readonly message: string
      /** The delay that the platform demands; overrides the back-off. */
      readonly retry_after_ms?: number
    }
  | { readonly status: 'unknown'; readonly message: string }

/** A delivery with an unknown result; it was not sent before `since`, in epoch milliseconds. */
export type Unsettled = Delivery & { readonly since: number }

/** The state of an unsettled delivery on the platform. `absent` promises that it will not arrive any more. */
export type SettleResult =
  | { readonly outcome: 'delivered'; readonly remote_message_id?: string }
  | { readonly outcome: 'absent' }
  /** `final`: asking again is useless. */
  | { readonly outcome: 'unknown'; readonly final?: boolean }

/** A room or person known to the platform. */
export interface Target extends Address {
  readonly display_name: string
  /** `user`, `channel`, `group`, `thread` … */
  readonly target_type: string
  /** Distinguishes targets of the same name. */
  readonly qualifier?: string
  readonly capabilities?: readonly string[]
}

/** One check of an adapter; `remediation` is the next step if it does not pass. */
export interface Check {
  readonly check: string
  readonly status: 'pass' | 'warn' | 'fail' | 'skipped'
  readonly remediation: string
}

/** State of an instance as its adapter reports it. */
export interface StateReport {
  readonly status: 'starting' | 'ready' | 'degraded' | 'auth_required' | 'error'
  readonly reason?: 'auth_failed' | 'rate_limited' | 'webhook_invalid' | 'provider_timeout' | 'tenant_config_invalid'
  readonly message?: string
  readonly webhook_public_url?: string
}

/** A file of a message. */
export interface Attachment {
  readonly name: string
  readonly mime_type: string
  /** Base64. An event with its files has at most 8 MiB; a note in the text replaces a file beyond that. */
  readonly data: string
}

/** An event of the platform; bridge-kit adds the instance id. */
export interface InboundEvent extends Address {
  /** Identical when the platform repeats the event. */
  readonly idempotency_key: string
  readonly family: 'message' | 'edit' | 'command' | 'action' | 'reaction'
  readonly sender: {
    readonly id: string
    readonly username?: string
    readonly display_name?: string
    /** The platform vouches for `id`. */
    readonly authenticated: boolean
    readonly is_bot?: boolean
  }
  readonly message_id?: string
  readonly reply_to_message_id?: string
  readonly text?: string
  readonly action_id?: string
  /** A direct message, or the bot is mentioned. */
  readonly addressed: boolean
  /** Written by a machine; it gets no answer. */
  readonly automatic?: boolean
  /** Epoch milliseconds, as stated by the platform. */
  readonly received_at?: number
  readonly attachments?: readonly Attachment[]
}

/** The outcome of an inbound event. */
export interface IngestResult {
  readonly idempotency_key: string
  readonly outcome: 'prompted' | 'answered' | 'duplicate' | 'ignored'
  readonly session_id?: string
  readonly reason?: string
}

/** A status that the platform reports after a message was sent. */
export interface DeliveryReport {
  /** The id returned when the message was delivered. */
  readonly remote_message_id: string
  readonly status: 'failed'
  /** For people. */
  readonly reason: string
}

/** Values of one instance that survive restarts, also in a sandbox; at most 64 KiB each. */
export interface Values {
  /** Undefined if not set. */
  get(key: string): Promise<unknown>
  /** Resolves when the value is durable. */
  put(key: string, value: unknown): Promise<void>
}

/** The daemon's API for one instance of an adapter. */
export interface Host {
  /** Aborted when the instance is closed. */
  readonly signal: AbortSignal
  /**
   * `control`: the instance is open only for a check, and the daemon accepts no events. Connect, report and verify as usual, but do
   * nothing that makes the platform count an event as received.
   */
  readonly purpose: 'service' | 'control'
  /** Folder for persistent data of the extension; it may not exist yet. Undefined: the daemon offers none. */
  readonly dataDir: string | undefined
  /** Requires `state/get` and `state/put` in the manifest. */
  readonly values: Values
  /** Reports the state of the instance. Reports are delivered in order; the last one counts. */
  report(state: StateReport): void
  /**
   * Hands an event to the daemon. Resolves once it is durable; acknowledge it to the platform only then. Events of one conversation
   * keep their order, and temporary refusals are retried. Rejects with {@link IngestRefused} if the daemon refuses it for good or
   * the instance is closed.
   */
  ingest(event: InboundEvent): Promise<IngestResult>
  /**
   * Reports that the platform failed to deliver a message that it had accepted. Resolves once the report is durable, with `unknown`
   * if the daemon does not have the message. Requires `bridges/deliveries/report` in the manifest. Rejects with {@link
   * IngestRefused} if the daemon refuses it.
   */
  reportDelivery(report: DeliveryReport): Promise<'recorded' | 'unknown'>
  /** Writes a line to the extension's log. It must contain no secrets. */
  log(text: string): void
}

/** One open instance of a bridge. */
export interface Adapter {
  /** Sends or changes one message. An error counts as `unknown`, unless it is a {@link NotSent}. */
  deliver(delivery: Delivery): Promise<DeliveryResult>
  targets(): Promise<readonly Target[]> | readonly Target[]
  settle?(unsettled: Unsettled): Promise<SettleResult>
  verify?(): Promise<readonly Check[]> | readonly Check[]
  registerWebhook?(): Promise<Check> | Check
  /** Why the instance receives nothing although it appears connected; undefined: it works. */
  deaf?(): string | undefined
  close(): Promise<void> | void
}

/** A message was certainly not sent, with the reason. */
export class NotSent extends Error {
  override readonly name = 'NotSent'
  constructor(
    readonly kind: NotSentKind,
    message: string,
    readonly how: { readonly permanent?: boolean; readonly retryAfterMs?: number } = {},
  ) {
    super(message)
  }

  /** The result in the form of the protocol. */
  toResult(): DeliveryResult {
    const { permanent = this.kind !== 'transient_delivery_failure', retryAfterMs } = this.how
    const retry = retryAfterMs === undefined ? {} : { retry_after_ms: retryAfterMs }
    return { status: 'not_sent', permanent, kind: this.kind, message: this.message, ...retry }
  }
}

/** Invalid configuration or secret of an instance, with its resulting state. */
export class InstanceProblem extends Error {
  override readonly name = 'InstanceProblem'
  constructor(readonly state: StateReport & { readonly message: string }) {
    super(state.message)
  }
}

/** The daemon refuses an event for good. */
export class IngestRefused extends Error {
  override readonly name = 'IngestRefused'
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message)
  }
}
