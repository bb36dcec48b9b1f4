/** Files beside an agent definition: the persona, the heartbeat policy, and the resulting wake-ups. */
import * as v from 'valibot'
import { Integer, maybeTimestamp, queryBoolean, queryInteger, Timestamp } from '../kernel/common.js'
import { PolicyDiagnostic, WakeEvent } from '../sessions/inspection.js'
import { SessionHealth } from '../sessions/session.js'
import { WakeReason, WakeResult, WakeState } from '../sessions/wake.js'

/** `inactive`: valid, but disabled by the file or the configuration. */
export const ValidationStatus = v.picklist(['missing', 'inactive', 'valid', 'invalid'])
export type ValidationStatus = v.InferOutput<typeof ValidationStatus>

/** `HH:MM` to `HH:MM` in a time zone; an end that is not after the start is on the next day. */
export const TimeWindow = v.object({ start: v.string(), end: v.string(), timezone: v.string() })
export type TimeWindow = v.InferOutput<typeof TimeWindow>

/** Contents of a wake-up prompt besides the guidance. */
export const HeartbeatContext = v.object({ include: v.optional(v.array(v.string())) })
export type HeartbeatContext = v.InferOutput<typeof HeartbeatContext>

/** Effective preferences: clamped, and without those that the configuration ignores. */
export const HeartbeatPreferences = v.object({
  active_hours: v.optional(v.array(TimeWindow)),
  context: HeartbeatContext,
  min_interval: v.string(),
  quiet_windows: v.optional(v.array(TimeWindow)),
})
export type HeartbeatPreferences = v.InferOutput<typeof HeartbeatPreferences>

/** Frontmatter of a HEARTBEAT.md file as written. */
export const HeartbeatFrontmatter = v.object({
  version: Integer,
  enabled: v.boolean(),
  summary: v.optional(v.string()),
  context: HeartbeatContext,
  preferences: v.object({
    active_hours: v.optional(v.array(TimeWindow)),
    min_interval: v.optional(v.string()),
    quiet_windows: v.optional(v.array(TimeWindow)),
  }),
})
export type HeartbeatFrontmatter = v.InferOutput<typeof HeartbeatFrontmatter>

/** Byte limits of the text, of the whole file, and of the text in a prompt. */
export const SidecarLimits = v.object({
  context_projection_bytes: v.optional(Integer),
  max_body_bytes: Integer,
  max_bytes: v.optional(Integer),
})
export type SidecarLimits = v.InferOutput<typeof SidecarLimits>

/** The part of the configuration that a policy depends on; durations as `30m`. */
export const HeartbeatConfigSubset = v.object({
  active_session_only: v.boolean(),
  allow_active_hours_preferences: v.boolean(),
  context_projection_bytes: Integer,
  default_interval: v.string(),
  enabled: v.boolean(),
  max_body_bytes: Integer,
  max_wakes_per_cycle: Integer,
  min_interval: v.string(),
  session_health_hook_min_interval: v.string(),
  session_health_stale_after: v.string(),
  wake_cooldown: v.string(),
  wake_event_retention: v.string(),
})
export type HeartbeatConfigSubset = v.InferOutput<typeof HeartbeatConfigSubset>

/** GET /api/agents/{name}/heartbeat: the effective policy of an agent. */
export const Heartbeat = v.object({
  active: v.boolean(),
  agent_name: v.optional(v.string()),
  config_digest: v.optional(v.string()),
  config_provenance: v.object({ digest: v.string(), subset: HeartbeatConfigSubset }),
  created_at: maybeTimestamp,
  diagnostics: v.optional(v.array(PolicyDiagnostic)),
  digest: v.optional(v.string()),
  enabled: v.boolean(),
  frontmatter: HeartbeatFrontmatter,
  guidance_markdown: v.optional(v.string()),
  limits: SidecarLimits,
  preferences: HeartbeatPreferences,
  present: v.boolean(),
  prompt: v.object({
    active: v.boolean(),
    config_digest: v.optional(v.string()),
    context: HeartbeatContext,
    diagnostics: v.optional(v.array(PolicyDiagnostic)),
    digest: v.optional(v.string()),
    guidance_markdown: v.optional(v.string()),
    max_body_bytes: Integer,
    max_bytes: Integer,
    preferences: HeartbeatPreferences,
    source_path: v.optional(v.string()),
    summary: v.optional(v.string()),
    truncated: v.boolean(),
  }),
  schema_version: Integer,
  snapshot_id: v.optional(v.string()),
  source_path: v.optional(v.string()),
  summary: v.optional(v.string()),
  valid: v.boolean(),
  validation_status: ValidationStatus,
})
export type Heartbeat = v.InferOutput<typeof Heartbeat>

/** Frontmatter of a SOUL.md file. */
export const SoulFrontmatter = v.object({
  version: v.optional(v.string()),
  role: v.optional(v.string()),
  tone: v.optional(v.array(v.string())),
  principles: v.optional(v.array(v.string())),
  constraints: v.optional(v.array(v.string())),
  collaboration: v.optional(v.array(v.string())),
  memory_policy: v.optional(v.array(v.string())),
  tags: v.optional(v.array(v.string())),
})
export type SoulFrontmatter = v.InferOutput<typeof SoulFrontmatter>

/** GET /api/agents/{name}/soul: the effective persona of an agent. */
export const Soul = v.object({
  active: v.boolean(),
  agent_name: v.optional(v.string()),
  body: v.optional(v.string()),
  config_provenance: v.object({
    context_projection_bytes: Integer,
    digest: v.string(),
    enabled: v.boolean(),
    max_body_bytes: Integer,
    source: v.optional(v.string()),
  }),
  created_at: maybeTimestamp,
  diagnostics: v.optional(v.array(PolicyDiagnostic)),
  digest: v.optional(v.string()),
  enabled: v.boolean(),
  frontmatter: SoulFrontmatter,
  limits: SidecarLimits,
  present: v.boolean(),
  revision_id: v.optional(v.string()),
  snapshot_id: v.optional(v.string()),
  source_path: v.optional(v.string()),
  truncated: v.optional(v.boolean()),
  valid: v.boolean(),
  validation_status: ValidationStatus,
})
export type Soul = v.InferOutput<typeof Soul>

const RevisionActor = v.object({
  kind: v.picklist(['user', 'agent', 'extension', 'system']),
  ref: v.optional(v.string()),
})
const revision = {
  id: v.string(),
  actor: RevisionActor,
  agent_name: v.string(),
  created_at: Timestamp,
  new_digest: v.optional(v.string()),
  previous_digest: v.optional(v.string()),
  source_path: v.string(),
}

/** One change of a HEARTBEAT.md file. */
export const HeartbeatRevision = v.object({
  ...revision,
  new_snapshot_id: v.optional(v.string()),
  operation: v.picklist(['write', 'delete', 'rollback']),
})
export type HeartbeatRevision = v.InferOutput<typeof HeartbeatRevision>

/** One change of a SOUL.md file. */
export const SoulRevision = v.object({
  ...revision,
  action: v.picklist(['put', 'delete', 'rollback']),
  diagnostics: v.optional(v.array(PolicyDiagnostic)),
  origin: v.nullish(v.object({ kind: v.string(), ref: v.optional(v.string()) })),
})
export type SoulRevision = v.InferOutput<typeof SoulRevision>

const workspace = { workspace_id: v.optional(v.string()) }
/** Empty or absent if there is no file yet. */
const expected = { expected_digest: v.optional(v.string(), '') }
const once = { idempotency_key: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(200))) }

/** GET of a persona or a policy; the workspace by id, name or path. */
export const SidecarQuery = v.object(workspace)
export type SidecarQuery = v.InferOutput<typeof SidecarQuery>

/** GET …/text: the file as it is, for an editor. */
export const SidecarTextReply = v.object({
  present: v.boolean(),
  /** Absent: there is no file, or it cannot be read as text. */
  text: v.optional(v.string()),
  digest: v.optional(v.string()),
  source_path: v.optional(v.string()),
  validation_status: ValidationStatus,
  diagnostics: v.optional(v.array(PolicyDiagnostic)),
})
export type SidecarTextReply = v.InferOutput<typeof SidecarTextReply>

/** PUT: the complete file. */
export const WriteSidecarBody = v.strictObject({ body: v.string(), ...expected, ...once, ...workspace })
export type WriteSidecarBody = v.InferOutput<typeof WriteSidecarBody>

/** DELETE. */
export const DeleteSidecarBody = v.strictObject({ ...expected, ...workspace })
export type DeleteSidecarBody = v.InferOutput<typeof DeleteSidecarBody>

/** POST …/validate of a policy. */
export const ValidateHeartbeatBody = v.strictObject({ body: v.string(), ...workspace })
export type ValidateHeartbeatBody = v.InferOutput<typeof ValidateHeartbeatBody>

/** POST …/validate of a persona; without a body the stored persona is validated. */
export const ValidateSoulBody = v.strictObject({ body: v.optional(v.string()), ...workspace })
export type ValidateSoulBody = v.InferOutput<typeof ValidateSoulBody>

/** POST …/rollback of a policy to a revision, or to the newest revision with a digest. */
export const RollbackHeartbeatBody = v.strictObject({
  revision_id: v.optional(v.string()),
  target_digest: v.optional(v.string()),
  ...expected,
  ...once,
  ...workspace,
})
export type RollbackHeartbeatBody = v.InferOutput<typeof RollbackHeartbeatBody>

/** POST …/rollback of a persona. */
export const RollbackSoulBody = v.strictObject({ revision_id: v.string(), ...expected, ...once, ...workspace })
export type RollbackSoulBody = v.InferOutput<typeof RollbackSoulBody>

/** POST …/soul/refresh: applies the agent's current persona to its session. */
export const RefreshSoulBody = v.strictObject({ ...expected, ...once })
export type RefreshSoulBody = v.InferOutput<typeof RefreshSoulBody>

/** GET …/history, the newest first. */
export const SidecarHistoryQuery = v.object({
  ...workspace,
  limit: v.optional(queryInteger(1, 100)),
  cursor: v.optional(v.string()),
})
export type SidecarHistoryQuery = v.InferOutput<typeof SidecarHistoryQuery>

const next = { next_cursor: v.optional(v.string()) }
export const HeartbeatHistoryReply = v.object({ ...next, revisions: v.array(HeartbeatRevision) })
export type HeartbeatHistoryReply = v.InferOutput<typeof HeartbeatHistoryReply>
export const SoulHistoryReply = v.object({ ...next, revisions: v.array(SoulRevision) })
export type SoulHistoryReply = v.InferOutput<typeof SoulHistoryReply>

/** Reply to a change of a policy: the effective policy and the new revision. */
export const HeartbeatChangeReply = v.object({ heartbeat: Heartbeat, revision: HeartbeatRevision })
export type HeartbeatChangeReply = v.InferOutput<typeof HeartbeatChangeReply>
export const SoulChangeReply = v.object({ soul: Soul, revision: SoulRevision })
export type SoulChangeReply = v.InferOutput<typeof SoulChangeReply>

/** GET …/heartbeat/status. */
export const HeartbeatStatusQuery = v.object({
  ...workspace,
  session_id: v.optional(v.string()),
  include_session_health: v.optional(queryBoolean()),
  include_recent_wake_events: v.optional(queryBoolean()),
})
export type HeartbeatStatusQuery = v.InferOutput<typeof HeartbeatStatusQuery>

/** GET …/heartbeat/status: whether the policy is active, and its recent results. */
export const HeartbeatStatus = v.object({
  active: v.boolean(),
  agent_name: v.string(),
  config_digest: v.optional(v.string()),
  diagnostics: v.optional(v.array(PolicyDiagnostic)),
  digest: v.optional(v.string()),
  enabled: v.boolean(),
  preferences: HeartbeatPreferences,
  present: v.boolean(),
  revision_cursor: v.optional(v.string()),
  session_health: v.nullish(SessionHealth),
  snapshot_id: v.optional(v.string()),
  source_path: v.optional(v.string()),
  summary: v.optional(v.string()),
  valid: v.boolean(),
  validation_status: ValidationStatus,
  wake_events: v.optional(v.array(WakeEvent)),
  wake_state: v.nullish(WakeState),
})
export type HeartbeatStatus = v.InferOutput<typeof HeartbeatStatus>

/** Source of a wake-up request. */
export const WakeSource = v.picklist(['scheduler', 'manual', 'harness_reentry'])
export type WakeSource = v.InferOutput<typeof WakeSource>

/** POST …/heartbeat/wake. */
export const WakeBody = v.strictObject({
  session_id: v.string(),
  source: WakeSource,
  dry_run: v.optional(v.boolean()),
  ...once,
  ...workspace,
})
export type WakeBody = v.InferOutput<typeof WakeBody>

/** The decision about a wake-up, with the reason. */
export const WakeDecision = v.object({
  config_digest: v.optional(v.string()),
  diagnostics: v.optional(v.array(PolicyDiagnostic)),
  policy_digest: v.optional(v.string()),
  policy_snapshot_id: v.optional(v.string()),
  reason: WakeReason,
  result: WakeResult,
  synthetic_prompt_id: v.optional(v.string()),
  wake_event_id: v.optional(v.string()),
})
export type WakeDecision = v.InferOutput<typeof WakeDecision>
export const WakeReply = v.object({ decision: WakeDecision })
export type WakeReply = v.InferOutput<typeof WakeReply>
