/** Members of the status. */
import * as v from 'valibot'
import { SchedulerState } from '../automation/definitions.js'
import { BridgeTotals } from '../bridges.js'
import { CountMap, Integer, maybeTimestamp, Timestamp } from '../kernel/common.js'
import { NetworkStatus } from '../network.js'
import { SkillDiagnostic } from '../skills.js'

/** Count and digest of one plugin's migrations. */
export const SchemaStream = v.object({
  applied_count: Integer,
  stream: v.string(),
  sum_digest: v.string(),
  version: Integer,
})
export type SchemaStream = v.InferOutput<typeof SchemaStream>

/** The daemon itself; `status` is `draining` while it drains. */
export const StatusDaemon = v.object({
  active_sessions: Integer,
  http_host: v.string(),
  /** Why TCP is not served; absent if it is. */
  http_off: v.optional(v.string()),
  http_port: Integer,
  network: v.nullish(NetworkStatus),
  pid: Integer,
  /** Why no extension runs; absent if extensions run. */
  safe_mode: v.optional(v.string()),
  /** Why no work starts: the home was restored from a backup and not confirmed yet. */
  held: v.optional(v.string()),
  schema_streams: v.array(SchemaStream),
  socket: v.string(),
  started_at: Timestamp,
  status: v.string(),
  total_sessions: Integer,
  user_home_dir: v.string(),
  version: v.optional(v.string()),
})
export type StatusDaemon = v.InferOutput<typeof StatusDaemon>

/** Session counts. */
export const StatusSessions = v.object({
  active: Integer,
  by_badge: v.optional(CountMap),
  by_status: v.optional(CountMap),
  total: Integer,
  /** `unavailable` if the plugin behind this member is absent. */
  status: v.optional(v.string()),
})
export type StatusSessions = v.InferOutput<typeof StatusSessions>

/** A session with an unresponsive process. */
export const SubprocessVerdict = v.object({
  agent_name: v.string(),
  consecutive_failures: Integer,
  last_checked_at: maybeTimestamp,
  reason: v.optional(v.string()),
  session_id: v.string(),
  workspace_id: v.string(),
})
export type SubprocessVerdict = v.InferOutput<typeof SubprocessVerdict>

/** Agent processes; degraded while an active session has a failed verdict. */
export const SubprocessHealth = v.object({
  healthy: Integer,
  monitored: Integer,
  sessions: v.optional(v.array(SubprocessVerdict)),
  status: v.string(),
  unhealthy: Integer,
})
export type SubprocessHealth = v.InferOutput<typeof SubprocessHealth>

/** Memory; svc has no such subsystem, so this member is always empty. */
export const StatusMemory = v.object({
  configured: v.boolean(),
  dream_agent: v.optional(v.string()),
  dream_check_interval: v.optional(v.string()),
  dream_enabled: v.boolean(),
  dream_min_hours: v.optional(v.number()),
  dream_min_sessions: v.optional(Integer),
  enabled: v.boolean(),
  global_dir: v.optional(v.string()),
  global_files: Integer,
  indexed_files: Integer,
  last_consolidation: v.nullable(Timestamp),
  last_operation_at: v.nullable(Timestamp),
  last_reindex: v.nullable(Timestamp),
  operation_count: Integer,
  orphaned_files: Integer,
  reason: v.optional(v.string()),
  status: v.string(),
  workspace_count: Integer,
  workspace_files: Integer,
})
export type StatusMemory = v.InferOutput<typeof StatusMemory>

/** Counts of all and of enabled definitions. */
export const DefinitionTotals = v.object({ enabled: Integer, total: Integer })
export type DefinitionTotals = v.InferOutput<typeof DefinitionTotals>

/** Jobs, triggers and the scheduler. */
export const StatusAutomation = v.object({
  enabled: v.boolean(),
  jobs: DefinitionTotals,
  next_fire: maybeTimestamp,
  scheduled_jobs: v.optional(v.array(SchedulerState)),
  scheduler_running: v.boolean(),
  triggers: DefinitionTotals,
  /** `unavailable` if the plugin behind this member is absent. */
  status: v.optional(v.string()),
})
export type StatusAutomation = v.InferOutput<typeof StatusAutomation>

/** Counts of failures that are neither acknowledged nor resolved. */
export const StatusAttention = v.object({
  /** Jobs and triggers with a failed latest run. */
  failed: v.optional(Integer),
  /** Jobs with a skipped occurrence. */
  missed: v.optional(Integer),
  /** Questions that expired without an answer. */
  expired: v.optional(Integer),
  summary: v.optional(v.string()),
  status: v.optional(v.string()),
})
export type StatusAttention = v.InferOutput<typeof StatusAttention>

/** Task count of one owner. */
export const TaskOwnerTotal = v.object({ count: Integer, owner_kind: v.string(), owner_ref: v.string() })
export type TaskOwnerTotal = v.InferOutput<typeof TaskOwnerTotal>

/** Queued runs in one channel. */
export const QueueDepth = v.object({
  channel_id: v.optional(v.string()),
  count: Integer,
  oldest_queue_age_ms: Integer,
  oldest_queued_at: maybeTimestamp,
})
export type QueueDepth = v.InferOutput<typeof QueueDepth>

/** Runs by origin and status. */
export const RunTotal = v.object({
  channel_id: v.optional(v.string()),
  count: Integer,
  origin_kind: v.string(),
  status: v.string(),
})
export type RunTotal = v.InferOutput<typeof RunTotal>

/** A run without progress. */
export const StuckRun = v.object({
  age_ms: Integer,
  channel_id: v.optional(v.string()),
  origin_kind: v.string(),
  run_id: v.string(),
  session_id: v.optional(v.string()),
  status: v.string(),
  task_id: v.string(),
})
export type StuckRun = v.InferOutput<typeof StuckRun>

/** Tasks by scope and status. */
export const TaskTotal = v.object({
  channel_id: v.optional(v.string()),
  count: Integer,
  scope: v.string(),
  status: v.string(),
})
export type TaskTotal = v.InferOutput<typeof TaskTotal>

/** How the last start handled unfinished runs. */
export const TaskRecovery = v.object({ failed: Integer, marked_running: Integer, requeued: Integer })
export type TaskRecovery = v.InferOutput<typeof TaskRecovery>

/** Tasks and their runs. */
export const StatusTasks = v.object({
  active_orphan_runs: Integer,
  channel_mismatch_since_start: Integer,
  duplicate_ingress_since_start: Integer,
  forced_stops_since_start: Integer,
  oldest_queue_age_ms: Integer,
  oldest_queued_at: maybeTimestamp,
  owner_totals: v.optional(v.array(TaskOwnerTotal)),
  queue_depth: v.optional(v.array(QueueDepth)),
  queue_depth_total: Integer,
  recovery_since_start: TaskRecovery,
  run_totals: v.optional(v.array(RunTotal)),
  status: v.string(),
  stuck_runs: v.optional(v.array(StuckRun)),
  task_totals: v.optional(v.array(TaskTotal)),
})
export type StatusTasks = v.InferOutput<typeof StatusTasks>

/** Bridge counts. */
export const StatusBridges = v.object({
  ...BridgeTotals.entries,
  /** `unavailable` if the plugin behind this member is absent. */
  status: v.optional(v.string()),
})
export type StatusBridges = v.InferOutput<typeof StatusBridges>

/** A provider and its readiness. */
export const StatusProvider = v.object({
  name: v.string(),
  code: v.optional(v.string()),
  default: v.boolean(),
  display_name: v.optional(v.string()),
  env_policy: v.optional(v.string()),
  home_policy: v.optional(v.string()),
  last_probe_at: maybeTimestamp,
  login_command: v.optional(v.string()),
  message: v.optional(v.string()),
  mode: v.optional(v.string()),
  state: v.string(),
  status_command: v.optional(v.string()),
  suggested_command: v.optional(v.string()),
})
export type StatusProvider = v.InferOutput<typeof StatusProvider>

/** An MCP server and its readiness. */
export const StatusMcpServer = v.object({
  name: v.string(),
  auth_status: v.optional(v.string()),
  configured: v.boolean(),
  diagnostic: v.optional(v.string()),
  initialized: v.boolean(),
  probe: v.optional(v.string()),
  reason: v.optional(v.string()),
  runtime_status: v.string(),
  scope: v.string(),
  state: v.string(),
  tool_count: v.optional(Integer),
  transport: v.optional(v.string()),
  workspace_id: v.optional(v.string()),
})
export type StatusMcpServer = v.InferOutput<typeof StatusMcpServer>

/** Skill counts. */
export const StatusSkills = v.object({
  diagnostics: v.optional(v.array(SkillDiagnostic)),
  disabled_count: Integer,
  discovered_count: Integer,
  runtime_available: v.boolean(),
  /** `unavailable` if the plugin behind this member is absent. */
  status: v.optional(v.string()),
})
export type StatusSkills = v.InferOutput<typeof StatusSkills>

/** The configuration, and whether all of it is applied. */
export const StatusConfig = v.object({
  apply_state: v.string(),
  config_file: v.optional(v.string()),
  home_dir: v.optional(v.string()),
  restart_required: v.boolean(),
  status: v.string(),
  validated: v.boolean(),
  validation_error: v.optional(v.string()),
})
export type StatusConfig = v.InferOutput<typeof StatusConfig>

/** Whether the log is readable. */
export const StatusLogTail = v.object({ available: v.boolean(), status: v.string() })
export type StatusLogTail = v.InferOutput<typeof StatusLogTail>
