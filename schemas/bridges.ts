/** Bridges. */
import * as v from 'valibot'
import { CountMap, Integer, JsonMap, maybeTimestamp, Page, queryInteger, Timestamp } from './kernel/common.js'
import { DiagnosticItem } from './kernel/diagnostic.js'

/** Bridge instances by status. */
export const BridgeStatusCounts = v.object({
  auth_required: Integer,
  degraded: Integer,
  disabled: Integer,
  error: Integer,
  ready: Integer,
  starting: Integer,
})
export type BridgeStatusCounts = v.InferOutput<typeof BridgeStatusCounts>

/** Totals over all bridge instances. */
export const BridgeTotals = v.object({
  auth_failures_total: Integer,
  delivery_backlog: Integer,
  delivery_dropped_total: Integer,
  delivery_failures_total: Integer,
  route_count: Integer,
  status_counts: BridgeStatusCounts,
  total_instances: Integer,
})
export type BridgeTotals = v.InferOutput<typeof BridgeTotals>

export const BridgeStatus = v.picklist(['auth_required', 'degraded', 'disabled', 'error', 'ready', 'starting'])
export type BridgeStatus = v.InferOutput<typeof BridgeStatus>

const Reason = v.picklist([
  'auth_failed',
  'rate_limited',
  'webhook_invalid',
  'provider_timeout',
  'tenant_config_invalid',
])
const DmPolicy = v.picklist(['open', 'allowlist', 'pairing'])
const Scope = v.picklist(['global', 'workspace'])

/** Why an instance is degraded or waits for a secret. */
export const BridgeDegradation = v.object({ reason: Reason, message: v.optional(v.string()) })
export type BridgeDegradation = v.InferOutput<typeof BridgeDegradation>

/** Address parts that separate conversations. */
const Routing = v.object({ include_group: v.boolean(), include_peer: v.boolean(), include_thread: v.boolean() })

const Progress = v.object({
  grouping: v.picklist(['accumulate', 'separate']),
  reactions: v.optional(v.boolean()),
  tool_progress: v.picklist(['off', 'new', 'all', 'verbose']),
  typing: v.optional(v.boolean()),
})
const Mode = v.picklist(['direct-send', 'reply'])
const Defaults = v.objectWithRest(
  {
    group_id: v.optional(v.string()),
    mode: v.optional(Mode),
    peer_id: v.optional(v.string()),
    progress: v.optional(Progress),
    thread_id: v.optional(v.string()),
  },
  // The union covers the type of every member; additional members are strings.
  v.union([Mode, v.string(), Progress]),
)

/** A connection between a messaging platform and the daemon. */
export const Bridge = v.object({
  id: v.string(),
  display_name: v.string(),
  platform: v.string(),
  extension_name: v.string(),
  scope: Scope,
  workspace_id: v.optional(v.string()),
  source: v.optional(v.picklist(['dynamic', 'package'])),
  enabled: v.boolean(),
  status: BridgeStatus,
  dm_policy: v.optional(DmPolicy),
  routing_policy: Routing,
  delivery_defaults: v.nullish(Defaults),
  provider_config: v.nullish(JsonMap),
  notification_suppress: v.boolean(),
  degradation: v.nullish(BridgeDegradation),
  webhook_public_url: v.optional(v.string()),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type Bridge = v.InferOutput<typeof Bridge>

/** A problem of an instance with the next step. */
export const BridgeDiagnostic = v.object({
  kind: v.picklist([
    'unknown_destination',
    'missing_token',
    'permission_denied',
    'unsupported_capability',
    'transient_delivery_failure',
  ]),
  severity: v.picklist(['info', 'warning', 'error']),
  source: v.string(),
  message: v.string(),
  next_action: v.optional(v.string()),
  secret_slot: v.optional(v.string()),
  degradation_reason: v.optional(Reason),
  status: v.optional(BridgeStatus),
  bridge_instance_id: v.optional(v.string()),
})
export type BridgeDiagnostic = v.InferOutput<typeof BridgeDiagnostic>

/** Health of an instance. */
export const BridgeHealth = v.object({
  bridge_instance_id: v.string(),
  status: BridgeStatus,
  auth_failures_total: Integer,
  delivery_backlog: Integer,
  delivery_dropped_total: Integer,
  delivery_dropped_by_reason: v.optional(CountMap),
  delivery_failures_total: Integer,
  route_count: Integer,
  degradation: v.nullish(BridgeDegradation),
  diagnostics: v.optional(v.array(BridgeDiagnostic)),
  last_error: v.optional(v.string()),
  last_error_at: maybeTimestamp,
  last_success_at: maybeTimestamp,
})
export type BridgeHealth = v.InferOutput<typeof BridgeHealth>

/** GET, POST, PATCH, enable, disable and restart of one instance. */
export const BridgeReply = v.object({ bridge: Bridge, health: BridgeHealth })
export type BridgeReply = v.InferOutput<typeof BridgeReply>

const where = {
  scope: v.optional(v.pipe(v.picklist(['all', 'global', 'workspace']), v.description('only those of this scope'))),
  workspace_id: v.optional(v.pipe(v.string(), v.description('only those of the workspace with this id'))),
  workspace: v.optional(v.pipe(v.string(), v.description('only those of this workspace: id, name or path'))),
}

/** A larger limit is reduced to the maximum. */
const Limit = v.pipe(
  queryInteger(0),
  v.transform(limit => Math.min(limit, 200)),
  v.number(),
  v.integer(),
  v.maxValue(200),
)

/** Query of GET /api/bridges. */
export const ListBridgesQuery = v.object({
  ...where,
  q: v.optional(v.pipe(v.string(), v.maxLength(200), v.description('search in name, id, platform and extension'))),
  platform: v.optional(v.pipe(v.string(), v.description('only those of this platform'))),
  status: v.optional(
    v.pipe(
      v.picklist(['disabled', 'starting', 'ready', 'degraded', 'auth_required', 'error']),
      v.description('only those with this status'),
    ),
  ),
  sort: v.optional(v.pipe(v.picklist(['name']), v.description('global ones first, then by display name'))),
  cursor: v.optional(v.pipe(v.string(), v.description('next_cursor of the previous page'))),
  limit: v.optional(v.pipe(Limit, v.description('page size; default 50, at most 200'))),
})
export type ListBridgesQuery = v.InferOutput<typeof ListBridgesQuery>

const HealthMap = v.record(v.string(), BridgeHealth)

/** GET /api/bridges. The facets count all pages and ignore only the filter of their own member. */
export const ListBridgesReply = v.object({
  bridges: v.array(Bridge),
  bridge_health: HealthMap,
  facets: v.object({ platforms: CountMap, statuses: BridgeStatusCounts }),
  page: Page,
})
export type ListBridgesReply = v.InferOutput<typeof ListBridgesReply>

const Name = v.pipe(v.string(), v.minLength(1), v.maxLength(200))
const flag = v.optional(v.boolean(), false)
const RoutingBody = v.strictObject({ include_group: flag, include_peer: flag, include_thread: flag })
const DefaultsBody = v.nullish(
  v.pipe(
    v.objectWithRest(
      {
        group_id: v.optional(v.string()),
        mode: v.optional(Mode),
        peer_id: v.optional(v.string()),
        progress: v.optional(
          v.strictObject({
            ...Progress.entries,
            grouping: v.optional(Progress.entries.grouping),
            tool_progress: v.optional(Progress.entries.tool_progress),
          }),
        ),
        thread_id: v.optional(v.string()),
      },
      // The union covers the type of every member; additional members must be strings.
      v.union([Mode, v.string(), Progress]),
    ),
    v.description('default target of messages that answer no other message: {"group_id":"#ops"}'),
  ),
)
const described = {
  dm_policy: v.pipe(DmPolicy, v.description('who may write direct messages')),
  routing_policy: v.pipe(
    RoutingBody,
    v.description(
      'members that distinguish conversations: {"include_group":true,"include_peer":false,"include_thread":true}',
    ),
  ),
  provider_config: v.nullish(v.pipe(JsonMap, v.description('settings of the platform; secrets are bound to slots'))),
  notification_suppress: v.pipe(v.boolean(), v.description('send no notifications')),
}

/** POST /api/bridges. */
export const CreateBridgeBody = v.strictObject({
  display_name: Name,
  platform: v.pipe(v.string(), v.description('platform, as svc bridge providers lists it')),
  extension_name: v.pipe(v.string(), v.description('extension whose adapter serves it')),
  scope: v.pipe(Scope, v.description('a workspace, whose agent answers, or global, which only sends')),
  workspace_id: v.optional(v.pipe(v.string(), v.description('workspace id, for scope workspace'))),
  enabled: v.pipe(v.boolean(), v.description('start it now')),
  routing_policy: described.routing_policy,
  dm_policy: v.optional(described.dm_policy),
  delivery_defaults: DefaultsBody,
  provider_config: described.provider_config,
  notification_suppress: v.optional(described.notification_suppress),
})
export type CreateBridgeBody = v.InferOutput<typeof CreateBridgeBody>

/** PATCH /api/bridges/{id}: the members that change. Null clears `delivery_defaults`, `provider_config` and `degradation`. */
export const PatchBridgeBody = v.strictObject({
  display_name: v.nullish(Name),
  dm_policy: v.nullish(described.dm_policy),
  routing_policy: v.nullish(described.routing_policy),
  provider_config: described.provider_config,
  delivery_defaults: DefaultsBody,
  notification_suppress: v.nullish(described.notification_suppress),
  degradation: v.nullish(
    v.strictObject({ reason: Reason, message: v.optional(v.pipe(v.string(), v.maxLength(1000))) }),
  ),
  clear_degradation: v.optional(v.pipe(v.boolean(), v.description('clear the degradation'))),
})
export type PatchBridgeBody = v.InferOutput<typeof PatchBridgeBody>

/** Query of GET /api/bridges/health/stream. */
export const BridgeHealthQuery = v.object({
  bridge_ids: v.pipe(v.string(), v.maxLength(40_000), v.description('ids of at most 200 bridges, separated by commas')),
  ...where,
})
export type BridgeHealthQuery = v.InferOutput<typeof BridgeHealthQuery>

/** GET /api/bridges/health/stream: the first frame has all bridges, later ones only changes. */
export const BridgeHealthChange = v.object({
  bridge_health: HealthMap,
  /** Ids of deleted bridges. */
  deleted: v.optional(v.array(v.string())),
  generated_at: Timestamp,
})
export type BridgeHealthChange = v.InferOutput<typeof BridgeHealthChange>

/** One frame of GET /api/bridges/health/stream. */
export const BridgeHealthFrame = v.object({
  id: v.string(),
  event: v.picklist(['snapshot', 'changed']),
  data: BridgeHealthChange,
})
export type BridgeHealthFrame = v.InferOutput<typeof BridgeHealthFrame>

/** A platform that an extension connects. */
export const BridgeProviderInfo = v.object({
  platform: v.string(),
  display_name: v.string(),
  description: v.optional(v.string()),
  extension_name: v.string(),
  enabled: v.boolean(),
  state: v.string(),
  health: v.string(),
  health_message: v.optional(v.string()),
  /** The platform has threads, which can be separate conversations. */
  threads: v.boolean(),
  config_schema: v.nullish(v.object({ schema: v.optional(v.string()), version: v.optional(v.string()) })),
  secret_slots: v.optional(
    v.array(v.object({ name: v.string(), description: v.optional(v.string()), required: v.optional(v.boolean()) })),
  ),
})
export type BridgeProviderInfo = v.InferOutput<typeof BridgeProviderInfo>

/** GET /api/bridges/providers. */
export const BridgeProvidersReply = v.object({ providers: v.array(BridgeProviderInfo) })
export type BridgeProvidersReply = v.InferOutput<typeof BridgeProvidersReply>

/** Query of GET /api/bridges/providers/{platform}/manifest. */
export const PlatformManifestQuery = v.object({
  instance: v.pipe(v.string(), v.description('id of the bridge that the app is for')),
})

/** Features in the manifest of an app; `url` is where the platform sends events. */
const features = <Url extends v.GenericSchema<string | undefined>>(url: Url) => ({
  bot_user: v.object({ display_name: v.string(), always_online: v.boolean() }),
  slash_commands: v.array(
    v.object({ command: v.string(), description: v.string(), usage_hint: v.string(), url, should_escape: v.boolean() }),
  ),
})
const manifest = <Url extends v.GenericSchema<string | undefined>>(url: Url) => ({
  _metadata: v.object({ major_version: Integer, minor_version: Integer }),
  display_information: v.object({ name: v.string(), description: v.string(), background_color: v.string() }),
  oauth_config: v.object({ scopes: v.object({ bot: v.array(v.string()) }) }),
  settings: v.object({
    event_subscriptions: v.object({ bot_events: v.array(v.string()), request_url: url }),
    interactivity: v.object({ is_enabled: v.boolean(), request_url: url }),
    org_deploy_enabled: v.boolean(),
    socket_mode_enabled: v.boolean(),
    token_rotation_enabled: v.boolean(),
  }),
})

/**
 * The manifest of an app in the platform's form. An app that opens the connection itself has no URLs, because the platform refuses
 * empty ones.
 */
export const AppManifest = v.object({
  ...manifest(v.optional(v.string())),
  features: v.object({
    ...features(v.optional(v.string())),
    app_home: v.object({
      home_tab_enabled: v.boolean(),
      messages_tab_enabled: v.boolean(),
      messages_tab_read_only_enabled: v.boolean(),
    }),
  }),
})
export type AppManifest = v.InferOutput<typeof AppManifest>

/** The manifest in the form of the older route: a missing URL is empty. */
export const PlatformManifest = v.object({ ...manifest(v.string()), features: v.object(features(v.string())) })
export type PlatformManifest = v.InferOutput<typeof PlatformManifest>

/** GET /api/bridges/providers/{platform}/manifest. */
export const AppManifestReply = v.object({ manifest: AppManifest })
export type AppManifestReply = v.InferOutput<typeof AppManifestReply>

/** GET /api/bridges/providers/chatprovider/manifest. */
export const PlatformManifestReply = v.object({ manifest: PlatformManifest })
export type PlatformManifestReply = v.InferOutput<typeof PlatformManifestReply>

/** A secret slot with a value. */
export const BridgeSecretBinding = v.object({
  bridge_instance_id: v.string(),
  binding_name: v.string(),
  kind: v.string(),
  secret_ref: v.string(),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type BridgeSecretBinding = v.InferOutput<typeof BridgeSecretBinding>

/** GET /api/bridges/{id}/secret-bindings. */
export const BridgeSecretBindingsReply = v.object({ bindings: v.array(BridgeSecretBinding) })
export type BridgeSecretBindingsReply = v.InferOutput<typeof BridgeSecretBindingsReply>

/** PUT /api/bridges/{id}/secret-bindings/{binding_name}. */
export const PutBridgeSecretBody = v.strictObject({
  kind: v.pipe(v.string(), v.minLength(1), v.maxLength(64)),
  secret_ref: v.pipe(v.string(), v.maxLength(512)),
  /** Absent: use the secret already stored in the vault. */
  secret_value: v.nullish(v.string()),
})
export type PutBridgeSecretBody = v.InferOutput<typeof PutBridgeSecretBody>

/** PUT /api/bridges/{id}/secret-bindings/{binding_name}. */
export const BridgeSecretBindingReply = v.object({ binding: BridgeSecretBinding })
export type BridgeSecretBindingReply = v.InferOutput<typeof BridgeSecretBindingReply>

/** A room or person reported by the platform. */
export const BridgeTarget = v.object({
  bridge_id: v.string(),
  canonical_route: v.string(),
  display_name: v.string(),
  normalized: v.string(),
  target_type: v.string(),
  qualifier: v.optional(v.string()),
  capabilities: v.array(v.string()),
  last_seen_at: Timestamp,
  updated_at: Timestamp,
})
export type BridgeTarget = v.InferOutput<typeof BridgeTarget>

/** Query of GET /api/bridges/{id}/targets. */
export const ListBridgeTargetsQuery = v.object({
  q: v.optional(v.pipe(v.string(), v.maxLength(200), v.description('search in names and routes'))),
  limit: v.optional(v.pipe(queryInteger(0), v.description('maximum number; default and most 50'))),
})
export type ListBridgeTargetsQuery = v.InferOutput<typeof ListBridgeTargetsQuery>

/** GET /api/bridges/{id}/targets. */
export const ListBridgeTargetsReply = v.object({
  bridge_id: v.string(),
  targets: v.array(BridgeTarget),
  total: Integer,
  cache_stale: v.boolean(),
  last_successful_refresh_at: maybeTimestamp,
  generated_at: Timestamp,
})
export type ListBridgeTargetsReply = v.InferOutput<typeof ListBridgeTargetsReply>

/** POST /api/bridges/{id}/resolve. */
export const ResolveBridgeTargetBody = v.strictObject({
  name: v.pipe(v.string(), v.minLength(1), v.maxLength(500), v.description('a route, an id or a name')),
})
export type ResolveBridgeTargetBody = v.InferOutput<typeof ResolveBridgeTargetBody>

/** POST /api/bridges/{id}/resolve. 404: no match; 422: several matches. */
export const ResolveBridgeTargetReply = v.object({
  result: v.object({
    match: v.nullish(BridgeTarget),
    candidates: v.optional(v.array(BridgeTarget)),
    ambiguous: v.boolean(),
    /** How the name matched. 1: route, 2: id in the route, 3: full name, 4: part of the name. */
    step: Integer,
  }),
  diagnostic: v.nullish(DiagnosticItem),
})
export type ResolveBridgeTargetReply = v.InferOutput<typeof ResolveBridgeTargetReply>

/** Error reply of POST /api/bridges/{id}/resolve. */
export const ResolveBridgeTargetFailure = v.object({
  ...ResolveBridgeTargetReply.entries,
  error: v.string(),
  code: v.optional(v.string()),
})
export type ResolveBridgeTargetFailure = v.InferOutput<typeof ResolveBridgeTargetFailure>

const part = v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(256)))

/** Destination of a test message. Without peer and group: the delivery defaults. */
export const BridgeTestTarget = v.strictObject({
  bridge_instance_id: v.optional(v.string()),
  peer_id: part,
  group_id: part,
  thread_id: part,
  mode: v.optional(Mode),
})
export type BridgeTestTarget = v.InferOutput<typeof BridgeTestTarget>

const Message = v.pipe(v.string(), v.maxLength(4000))

/** POST /api/bridges/{id}/test-delivery. */
export const TestDeliveryBody = v.strictObject({
  message: v.optional(Message),
  target: v.optional(BridgeTestTarget, {}),
})
export type TestDeliveryBody = v.InferOutput<typeof TestDeliveryBody>

/** POST /api/bridges/{id}/send-test. */
export const SendTestBody = v.strictObject({
  message: v.pipe(Message, v.minLength(1)),
  target: v.optional(BridgeTestTarget, {}),
})
export type SendTestBody = v.InferOutput<typeof SendTestBody>

const DeliveryTarget = v.object({
  bridge_instance_id: v.string(),
  peer_id: v.optional(v.string()),
  group_id: v.optional(v.string()),
  thread_id: v.optional(v.string()),
  mode: v.optional(Mode),
})

/** POST /api/bridges/{id}/test-delivery: the delivery that would be made. */
export const TestDeliveryReply = v.object({
  delivery_target: DeliveryTarget,
  message: v.optional(v.string()),
  status: v.string(),
})
export type TestDeliveryReply = v.InferOutput<typeof TestDeliveryReply>

/** POST /api/bridges/{id}/send-test. */
export const SendTestReply = v.object({
  bridge_instance_id: v.string(),
  delivery_id: v.string(),
  delivery_target: DeliveryTarget,
  status: v.picklist(['delivered', 'committed_result_unavailable']),
  remote_message_id: v.optional(v.string()),
  error: v.nullish(v.object({ message: v.string() })),
})
export type SendTestReply = v.InferOutput<typeof SendTestReply>

const CheckStatus = v.picklist(['pass', 'warn', 'fail', 'skipped'])

/** POST /api/bridges/{id}/verify. */
export const VerifyBridgeReply = v.object({
  bridge_instance_id: v.string(),
  checks: v.array(v.object({ check: v.string(), status: CheckStatus, remediation: v.string() })),
})
export type VerifyBridgeReply = v.InferOutput<typeof VerifyBridgeReply>

/** POST /api/bridges/{id}/webhook/register. */
export const RegisterWebhookReply = v.object({
  bridge_instance_id: v.string(),
  status: CheckStatus,
  remediation: v.string(),
})
export type RegisterWebhookReply = v.InferOutput<typeof RegisterWebhookReply>
