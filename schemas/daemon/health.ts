/** Member `health` of the status. */
import * as v from 'valibot'
import { BridgeTotals } from '../bridges.js'
import { CountMap, Integer, maybeTimestamp, Timestamp } from '../kernel/common.js'

/** A running turn. */
export const HealthActivity = v.object({
  current_tool: v.optional(v.string()),
  deadline_at: maybeTimestamp,
  elapsed_ms: Integer,
  elapsed_seconds: Integer,
  idle_seconds: Integer,
  iteration_current: Integer,
  iteration_max: Integer,
  last_activity_at: maybeTimestamp,
  last_activity_detail: v.optional(v.string()),
  last_activity_kind: v.optional(v.string()),
  last_progress_at: maybeTimestamp,
  session_id: v.string(),
  stall_reason: v.optional(v.string()),
  stall_state: v.optional(v.string()),
  status: v.string(),
  tool_call_id: v.optional(v.string()),
  turn_id: v.optional(v.string()),
  turn_source: v.optional(v.string()),
  turn_started_at: maybeTimestamp,
})
export type HealthActivity = v.InferOutput<typeof HealthActivity>

/** Whether the command of an agent is available. */
export const AgentProbe = v.object({
  agent_name: v.optional(v.string()),
  checked_at: Timestamp,
  command: v.optional(v.string()),
  duration_ms: Integer,
  error: v.optional(v.string()),
  executable: v.optional(v.string()),
  provider: v.optional(v.string()),
  status: v.string(),
})
export type AgentProbe = v.InferOutput<typeof AgentProbe>

/** A session that failed recently. */
export const RecentFailure = v.object({
  agent_name: v.optional(v.string()),
  crash_bundle_path: v.optional(v.string()),
  failure_kind: v.string(),
  provider: v.optional(v.string()),
  session_id: v.string(),
  state: v.optional(v.string()),
  summary: v.optional(v.string()),
  workspace_id: v.optional(v.string()),
  updated_at: Timestamp,
})
export type RecentFailure = v.InferOutput<typeof RecentFailure>

/** Failures by kind. */
export const FailureTotals = v.object({
  by_kind: v.optional(CountMap),
  recent: v.optional(v.array(RecentFailure)),
  status: v.string(),
  total: Integer,
})
export type FailureTotals = v.InferOutput<typeof FailureTotals>

/** Bytes used by the stores. */
export const PersistenceHealth = v.object({
  global_db_size_bytes: Integer,
  session_db_size_bytes: Integer,
  status: v.string(),
})
export type PersistenceHealth = v.InferOutput<typeof PersistenceHealth>

/** Disk space of the home's file system; `full` while new work is refused with 507. */
export const DiskHealth = v.object({
  status: v.picklist(['ok', 'full']),
  /** Bytes; absent if the system does not report them. */
  free_bytes: v.optional(Integer),
})
export type DiskHealth = v.InferOutput<typeof DiskHealth>

/** Result of the last retention sweep. */
export const RetentionHealth = v.object({
  deleted_event_summaries: Integer,
  deleted_permission_log_rows: Integer,
  deleted_token_stats: Integer,
  deleted_token_usage_daily: Integer,
  enabled: v.boolean(),
  last_cutoff_at: maybeTimestamp,
  last_sweep_at: maybeTimestamp,
  last_sweep_error: v.optional(v.string()),
  last_sweep_status: v.string(),
  retention_days: Integer,
  sweep_interval_seconds: Integer,
})
export type RetentionHealth = v.InferOutput<typeof RetentionHealth>

/** A record that its kind's reconciler could not apply; it stays stored and is retried. */
export const QuarantinedRecord = v.object({
  kind: v.string(),
  id: v.string(),
  attempts: Integer,
  error: v.string(),
  retry_at: Timestamp,
})
export type QuarantinedRecord = v.InferOutput<typeof QuarantinedRecord>

/** A kind of records: its count, and whether the runtime applies it. */
export const KindStatus = v.object({
  kind: v.string(),
  /** False: no plugin registered the kind, so its records are stored unchecked. */
  registered: v.boolean(),
  /** False: no reconciler applies these records; they are only stored and read on demand. */
  projected: v.boolean(),
  records: Integer,
  pending: Integer,
  quarantined: Integer,
  status: v.picklist(['healthy', 'failing', 'degraded', 'stuck', 'unprojected', 'unregistered']),
})
export type KindStatus = v.InferOutput<typeof KindStatus>

/** Whether the runtime applies the stored records; `failing` names the kinds that it could not apply. */
export const ReconcileStatus = v.object({
  status: v.string(),
  failing: v.array(v.string()),
  /** Kinds of validated records that no reconciler applies. */
  unprojected: v.array(v.string()),
  kinds: v.array(KindStatus),
  /** At most 100. */
  quarantined: v.array(QuarantinedRecord),
})
export type ReconcileStatus = v.InferOutput<typeof ReconcileStatus>

/** A plugin and its state; `reason` says why it is not active. */
export const PluginStatus = v.object({
  name: v.string(),
  version: v.string(),
  status: v.picklist(['active', 'waiting', 'failed', 'disabled']),
  reason: v.optional(v.string()),
})
export type PluginStatus = v.InferOutput<typeof PluginStatus>

/** The vault; degraded while a secret cannot be opened. */
export const VaultHealth = v.object({
  status: v.picklist(['ok', 'degraded']),
  secrets: Integer,
  /** Secrets with unreadable records. */
  damaged: Integer,
  key_source: v.picklist(['environment', 'credential', 'file']),
  /** Why no secret can be decrypted. */
  code: v.optional(v.string()),
})
export type VaultHealth = v.InferOutput<typeof VaultHealth>

/** Health of the daemon. */
export const StatusHealth = v.object({
  active_agents: Integer,
  active_sessions: Integer,
  activities: v.optional(v.array(HealthActivity)),
  agent_probes: v.optional(v.array(AgentProbe)),
  bridges: BridgeTotals,
  disk: v.optional(DiskHealth),
  failures: FailureTotals,
  global_db_size_bytes: Integer,
  persistence: PersistenceHealth,
  plugins: v.optional(v.array(PluginStatus)),
  reconcile: v.optional(ReconcileStatus),
  retention: RetentionHealth,
  session_db_size_bytes: Integer,
  status: v.string(),
  uptime_seconds: Integer,
  vault: v.optional(VaultHealth),
  version: v.string(),
})
export type StatusHealth = v.InferOutput<typeof StatusHealth>
