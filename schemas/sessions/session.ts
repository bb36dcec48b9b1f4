/** The session object. */
import * as v from 'valibot'
import { PermissionMode, ReasoningEffort } from '../agents.js'
import { Integer, maybeTimestamp, Timestamp } from '../kernel/common.js'
import { ResolvedParticipation } from '../network.js'

/** Life of a session. */
export const SessionState = v.picklist(['starting', 'active', 'stopping', 'stopped'])
export type SessionState = v.InferOutput<typeof SessionState>

/** Who made a session. */
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

/** How fast a model is to answer. */
export const Speed = v.picklist(['normal', 'fast'])
export type Speed = v.InferOutput<typeof Speed>

/** How well a session is. */
export const HealthLevel = v.picklist(['healthy', 'degraded', 'stale', 'dead', 'unknown'])
export type HealthLevel = v.InferOutput<typeof HealthLevel>

/** What a session is doing. */
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

/** A setting that the agent process offers. */
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

/** What the agent process can do. */
export const AcpCapabilities = v.object({
  config_options: v.optional(v.array(ConfigOption)),
  supported_modes: v.optional(v.array(v.string())),
  supports_load_session: v.boolean(),
})
export type AcpCapabilities = v.InferOutput<typeof AcpCapabilities>

/** A slash command that the agent offers. */
export const AvailableCommand = v.object({
  name: v.string(),
  description: v.string(),
  input: v.nullish(v.object({ hint: v.string() })),
})
export type AvailableCommand = v.InferOutput<typeof AvailableCommand>

/** What the current turn is doing; durations as their names say. */
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

/** Whether a session is well, attachable and can be woken. */
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

/** What a spawned session may use, a part of what its parent may. */
export const PermissionPolicy = v.object({
  mcp_servers: v.array(v.string()),
  network_channels: v.array(v.string()),
  sandbox_profiles: v.array(v.string()),
  skills: v.array(v.string()),
  tools: v.array(v.string()),
  workspace_paths: v.array(v.string()),
})
export type PermissionPolicy = v.InferOutput<typeof PermissionPolicy>

/** How many children a session may have, how deep, how long. */
export const SpawnBudget = v.object({
  max_active_per_workspace: v.optional(Integer),
  max_children: Integer,
  max_depth: Integer,
  ttl_seconds: Integer,
})
export type SpawnBudget = v.InferOutput<typeof SpawnBudget>

/** Where a session comes from. */
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

/** The sandbox that a session runs in. */
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

/** What became of a wish for speed. */
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
  /** What the agent may do without asking, as it was at its last start. */
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
