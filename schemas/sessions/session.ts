/** The session object. */
import * as v from 'valibot'
import { PermissionMode, ReasoningEffort } from '../agents.js'
import { Integer, maybeTimestamp, Timestamp } from '../kernel/common.js'
import { ResolvedParticipation } from '../network.js'

/** Life-cycle state of a session. */
export const SessionState = v.picklist(['starting', 'active', 'stopping', 'stopped'])
export type SessionState = v.InferOutput<typeof SessionState>

/** Origin of a session. */
export const SessionType = v.picklist(['user', 'dream', 'system', 'coordinator', 'spawned'])
export type SessionType = v.InferOutput<typeof SessionType>

/** Why a session stopped. */
export const StopReason = v.picklist([
  'completed',
  'user_canceled',
  'max_iterations',
  'loop_detected',
  'timeout',
  'budget_exceeded',
  'error',
  'agent_crashed',
  'hook_stopped',
  'shutdown',
])
export type StopReason = v.InferOutput<typeof StopReason>

/** Requested speed of a model. */
export const Speed = v.picklist(['normal', 'fast'])
export type Speed = v.InferOutput<typeof Speed>

/** Health of a session. */
export const HealthLevel = v.picklist(['healthy', 'degraded', 'stale', 'dead', 'unknown'])
export type HealthLevel = v.InferOutput<typeof HealthLevel>

/** Activity of a session. */
export const HealthState = v.picklist(['idle', 'prompting', 'stopped', 'detached'])
export type HealthState = v.InferOutput<typeof HealthState>

/** Why a session cannot be woken. */
export const WakeIneligibility = v.picklist([
  'session_prompt_active',
  'session_not_attachable',
  'session_unhealthy',
  'session_health_stale',
  'session_health_hung',
  'session_health_dead',
  'session_health_unknown',
])
export type WakeIneligibility = v.InferOutput<typeof WakeIneligibility>

/** A configuration option of the agent process. */
export const ConfigOption = v.object({
  id: v.string(),
  kind: v.string(),
  current: v.optional(v.string()),
  description: v.optional(v.string()),
  label: v.optional(v.string()),
  values: v.optional(
    v.array(
      v.object({
        description: v.optional(v.string()),
        label: v.optional(v.string()),
        value: v.string(),
      }),
    ),
  ),
})
export type ConfigOption = v.InferOutput<typeof ConfigOption>

/** Capabilities of the agent process. */
export const AcpCapabilities = v.object({
  config_options: v.optional(v.array(ConfigOption)),
  supported_modes: v.optional(v.array(v.string())),
  supports_load_session: v.boolean(),
})
export type AcpCapabilities = v.InferOutput<typeof AcpCapabilities>

/** A slash command of the agent. */
export const AvailableCommand = v.object({
  name: v.string(),
  description: v.string(),
  input: v.nullish(v.object({ hint: v.string() })),
})
export type AvailableCommand = v.InferOutput<typeof AvailableCommand>

/** Activity of the current turn; member names state the unit of durations. */
export const SessionActivity = v.object({
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
  tool_call_id: v.optional(v.string()),
  turn_id: v.optional(v.string()),
  turn_source: v.optional(v.string()),
  turn_started_at: maybeTimestamp,
})
export type SessionActivity = v.InferOutput<typeof SessionActivity>

/** Why a session failed. */
export const SessionFailure = v.object({
  kind: v.string(),
  crash_bundle_path: v.optional(v.string()),
  summary: v.optional(v.string()),
})
export type SessionFailure = v.InferOutput<typeof SessionFailure>

/** Whether a session is healthy, attachable and can be woken. */
export const SessionHealth = v.object({
  active_prompt: v.boolean(),
  agent_name: v.string(),
  attachable: v.boolean(),
  eligible_for_wake: v.boolean(),
  health: HealthLevel,
  ineligibility_reason: v.optional(WakeIneligibility),
  last_activity_at: maybeTimestamp,
  last_error: v.optional(v.string()),
  last_presence_at: maybeTimestamp,
  session_id: v.string(),
  state: HealthState,
  workspace_id: v.string(),
  updated_at: Timestamp,
})
export type SessionHealth = v.InferOutput<typeof SessionHealth>

/** Permissions of a spawned session, a subset of its parent's. */
export const PermissionPolicy = v.object({
  mcp_servers: v.array(v.string()),
  network_channels: v.array(v.string()),
  sandbox_profiles: v.array(v.string()),
  skills: v.array(v.string()),
  tools: v.array(v.string()),
  workspace_paths: v.array(v.string()),
})
export type PermissionPolicy = v.InferOutput<typeof PermissionPolicy>

/** Limits of a session's children: number, depth and lifetime. */
export const SpawnBudget = v.object({
  max_active_per_workspace: v.optional(Integer),
  max_children: Integer,
  max_depth: Integer,
  ttl_seconds: Integer,
})
export type SpawnBudget = v.InferOutput<typeof SpawnBudget>

/** Parent and root of a session. */
export const SessionLineage = v.object({
  auto_stop_on_parent: v.boolean(),
  parent_session_id: v.optional(v.string()),
  permission_policy: PermissionPolicy,
  root_session_id: v.optional(v.string()),
  spawn_budget: SpawnBudget,
  spawn_depth: Integer,
  spawn_role: v.optional(v.string()),
  ttl_expires_at: maybeTimestamp,
})
export type SessionLineage = v.InferOutput<typeof SessionLineage>

/** The sandbox of a session. */
export const SessionSandbox = v.object({
  backend: v.optional(v.string()),
  instance_id: v.optional(v.string()),
  last_sync_error: v.optional(v.string()),
  profile: v.optional(v.string()),
  provider_state_json: v.optional(v.unknown()),
  sandbox_id: v.optional(v.string()),
  state: v.optional(v.string()),
})
export type SessionSandbox = v.InferOutput<typeof SessionSandbox>

/** Outcome of a speed request. */
export const SpeedResolution = v.object({
  reason: v.optional(v.picklist(['capability_absent', 'capability_ambiguous', 'value_ambiguous', 'provider_rejected'])),
  requested: Speed,
  status: v.picklist(['applied', 'unsupported', 'rejected']),
})
export type SpeedResolution = v.InferOutput<typeof SpeedResolution>

/** A conversation with one agent, in one workspace, with or without a process. */
export const Session = v.object({
  id: v.string(),
  name: v.optional(v.string()),
  acp_caps: v.nullish(AcpCapabilities),
  acp_session_id: v.optional(v.string()),
  activity: v.nullish(SessionActivity),
  agent_name: v.string(),
  attach_expires_at: maybeTimestamp,
  attachable: v.boolean(),
  attached_to: v.optional(v.string()),
  available_commands: v.array(AvailableCommand),
  badge: v.string(),
  failure: v.nullish(SessionFailure),
  health: v.nullish(SessionHealth),
  lineage: v.nullish(SessionLineage),
  model: v.optional(v.string()),
  /** Permission mode at its last start. */
  permissions: v.optional(PermissionMode),
  provider: v.string(),
  reasoning_effort: v.optional(ReasoningEffort),
  resolved_network_participation: v.nullish(ResolvedParticipation),
  sandbox: v.nullish(SessionSandbox),
  speed: v.optional(Speed),
  speed_resolution: v.nullish(SpeedResolution),
  state: SessionState,
  stop_detail: v.optional(v.string()),
  stop_reason: v.optional(StopReason),
  transcript_epoch: v.optional(Integer),
  type: v.optional(SessionType),
  workspace_id: v.optional(v.string()),
  workspace_path: v.optional(v.string()),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type Session = v.InferOutput<typeof Session>
