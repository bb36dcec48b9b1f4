/** Where a message goes, or where one came from; members that the platform does not have are absent. */
export interface Address {
  readonly peer_id?: string
  readonly group_id?: string
  readonly thread_id?: string
}

/** A bridge instance, as the daemon hands it to its adapter. */
export interface Instance {
  readonly id: string
  readonly displayName: string
  readonly platform: string
  /** Absent: it is global. */
  readonly workspaceId?: string
  readonly dmPolicy: string
  readonly config: Readonly<Record<string, unknown>>
  /** The value that is bound to a slot of the manifest; undefined: none is. */
  secret(slot: string): string | undefined
}

/** One message of the platform that is to be sent or changed. */
export interface Delivery {
  readonly bridge_instance_id: string
  /** Of the whole answer; its parts share it. */
  readonly delivery_id: string
  /** From 0. */
  readonly part: number
  /**
   * `start` and `final` without {@link remote_message_id} make a message; with one they change it. `typing` makes none: show that
   * somebody writes. It comes only where the manifest has `typing = true`.
   */
  readonly event: 'start' | 'delta' | 'progress' | 'final' | 'error' | 'delete' | 'resume' | 'typing'
  readonly target: Address
  /** The whole text of the part as it has to read from now on. */
  readonly text: string
  /** The same at each attempt for one part. At most 64 of A-Za-z0-9_-. */
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

/** What became of a {@link Delivery}. `not_sent`: surely not, and it may be tried again unless `permanent`. */
export type DeliveryResult =
  | { readonly status: 'delivered'; readonly remote_message_id?: string }
  | {
      readonly status: 'not_sent'
      readonly permanent: boolean
      readonly kind: NotSentKind
      readonly message: string
      /** Of the platform; authoritative. */
      readonly retry_after_ms?: number
    }
  | { readonly status: 'unknown'; readonly message: string }

/** A delivery whose result is not known, with the time before which it was not sent, in epoch milliseconds. */
export type Unsettled = Delivery & { readonly since: number }

/** What the platform says of an unsettled delivery. `absent` promises that it does not arrive any more. */
export type SettleResult =
  | { readonly outcome: 'delivered'; readonly remote_message_id?: string }
  | { readonly outcome: 'absent' }
  /** `final`: asking again will not tell more. */
  | { readonly outcome: 'unknown'; readonly final?: boolean }

/** A room or person that the platform knows. */
export interface Target extends Address {
  readonly display_name: string
  /** `user`, `channel`, `group`, `thread` … */
  readonly target_type: string
  /** What distinguishes two targets of one name. */
  readonly qualifier?: string
  readonly capabilities?: readonly string[]
}

/** One check of an adapter; `remediation` names the next step of one that does not pass. */
export interface Check {
  readonly check: string
  readonly status: 'pass' | 'warn' | 'fail' | 'skipped'
  readonly remediation: string
}

/** State of an instance, as its adapter reports it. */
export interface StateReport {
  readonly status: 'starting' | 'ready' | 'degraded' | 'auth_required' | 'error'
  readonly reason?: 'auth_failed' | 'rate_limited' | 'webhook_invalid' | 'provider_timeout' | 'tenant_config_invalid'
  readonly message?: string
  readonly webhook_public_url?: string
}

/** A file that came with a message. */
export interface Attachment {
  readonly name: string
  readonly mime_type: string
  /** Base64. An event with its files fits into 8 MiB; a file beyond that is named in the text instead. */
  readonly data: string
}

/** Something that happened on the platform; the library adds the id of the instance. */
export interface InboundEvent extends Address {
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
  readonly message_id?: string
  readonly reply_to_message_id?: string
  readonly text?: string
  readonly action_id?: string
  /** It is addressed to the bot: a direct message, or the bot is named. */
  readonly addressed: boolean
  /** A machine wrote it; nothing answers it. */
  readonly automatic?: boolean
  /** Epoch milliseconds of the platform. */
  readonly received_at?: number
  readonly attachments?: readonly Attachment[]
}

/** What became of an inbound event in the daemon. */
export interface IngestResult {
  readonly idempotency_key: string
  readonly outcome: 'prompted' | 'answered' | 'duplicate' | 'ignored'
  readonly session_id?: string
  readonly reason?: string
}

/** What the platform says of a message later than of its sending. */
export interface DeliveryReport {
  /** As it was answered when the message was delivered. */
  readonly remote_message_id: string
  readonly status: 'failed'
  /** For people. */
  readonly reason: string
}

/** Values of one instance that outlast the process, also in a sandbox, at most 64 KiB each. */
export interface Values {
  /** Undefined: there is none. */
  get(key: string): Promise<unknown>
  /** Resolves when the value is durable. */
  put(key: string, value: unknown): Promise<void>
}

/** The daemon, as one instance of an adapter sees it. */
export interface Host {
  /** Aborted when the instance is closed. */
  readonly signal: AbortSignal
  /**
   * `control`: the instance is open for a check alone, and the daemon takes no event of it. Connect, report and verify as ever, and do
   * nothing that would have the platform count something as received.
   */
  readonly purpose: 'service' | 'control'
  /** Folder of the extension for what outlasts its process; it may not exist yet. Undefined: the daemon offers none. */
  readonly dataDir: string | undefined
  /** The manifest has to require `state/get` and `state/put`. */
  readonly values: Values
  /** Reports the state of the instance; reports arrive in their order, and the last one counts. */
  report(state: StateReport): void
  /**
   * Hands an event to the daemon. Resolves when it is durable there: only then the platform may be told that it was seen.
   * Events of one conversation arrive in their order; one that the daemon refuses for now is sent again until it is taken.
   * Rejects with {@link IngestRefused} when it never will be, or when the instance is closed.
   */
  ingest(event: InboundEvent): Promise<IngestResult>
  /**
   * Tells the daemon that a message did not arrive which the platform had taken. Resolves when that is durable, with `unknown` where
   * the daemon has no such message (any more). The manifest has to require `bridges/deliveries/report`.
   * Rejects with {@link IngestRefused} when the daemon does not take it.
   */
  reportDelivery(report: DeliveryReport): Promise<'recorded' | 'unknown'>
  /** Writes a line to the log of the extension. It must hold no secret. */
  log(text: string): void
}

/** One instance of a bridge, open. */
export interface Adapter {
  /** Sends or changes one message. A throw counts as `unknown`, unless it is a {@link NotSent}. */
  deliver(delivery: Delivery): Promise<DeliveryResult>
  targets(): Promise<readonly Target[]> | readonly Target[]
  settle?(unsettled: Unsettled): Promise<SettleResult>
  verify?(): Promise<readonly Check[]> | readonly Check[]
  registerWebhook?(): Promise<Check> | Check
  /** Why it hears nothing of the platform although it appears connected; undefined: it is well. */
  deaf?(): string | undefined
  close(): Promise<void> | void
}

/** Says that a message was surely not sent, and why. */
export class NotSent extends Error {
  override readonly name = 'NotSent'
  constructor(
    readonly kind: NotSentKind,
    message: string,
    readonly how: { readonly permanent?: boolean; readonly retryAfterMs?: number } = {},
  ) {
    super(message)
  }

  /** As the daemon reads it. */
  toResult(): DeliveryResult {
    const { permanent = this.kind !== 'transient_delivery_failure', retryAfterMs } = this.how
    const retry = retryAfterMs === undefined ? {} : { retry_after_ms: retryAfterMs }
    return { status: 'not_sent', permanent, kind: this.kind, message: this.message, ...retry }
  }
}

/** The configuration or a secret of an instance does not do, with the state that the instance is in because of it. */
export class InstanceProblem extends Error {
  override readonly name = 'InstanceProblem'
  constructor(readonly state: StateReport & { readonly message: string }) {
    super(state.message)
  }
}

/** The daemon does not take an event, now or later. */
export class IngestRefused extends Error {
  override readonly name = 'IngestRefused'
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message)
  }
}
