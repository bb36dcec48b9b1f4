/** The runtime of a session, and the session with it. */
import * as v from 'valibot'
import { ReasoningEffort } from '../agents.js'
import { Integer, maybeTimestamp, queryInteger, Timestamp } from '../kernel/common.js'
import { questionMembers } from './questions.js'
import { ConfigOption, Session, SessionLineage, Speed, SpeedResolution } from './session.js'

/** Provider and model for later prompts, or for one prompt. */
export const RuntimeSelection = v.strictObject({
  model: v.optional(v.string()),
  provider: v.string(),
  reasoning_effort: v.optional(ReasoningEffort),
  speed: v.optional(Speed),
})
export type RuntimeSelection = v.InferOutput<typeof RuntimeSelection>

/** PUT …/runtime: `expected_revision` is the last known `selection_revision`; null accepts any. */
export const PutRuntimeBody = v.strictObject({ expected_revision: v.nullable(Integer), runtime: RuntimeSelection })
export type PutRuntimeBody = v.InferOutput<typeof PutRuntimeBody>

/** DELETE …/runtime. */
export const DeleteRuntimeQuery = v.object({ expected_revision: queryInteger(0) })
export type DeleteRuntimeQuery = v.InferOutput<typeof DeleteRuntimeQuery>

/** A question or permission request that waits for a person. */
export const PendingInteraction = v.object({
  kind: v.string(),
  choices: v.optional(v.array(v.string())),
  decisions: v.optional(v.array(v.string())),
  interaction_id: v.string(),
  provider_request_id: v.string(),
  resolution: v.optional(v.string()),
  resolved_at: maybeTimestamp,
  resolved_by: v.optional(v.string()),
  status: v.string(),
  title: v.optional(v.string()),
  turn_id: v.optional(v.string()),
  created_at: Timestamp,
  /** Kind of the tool call of a permission request, such as `edit` or `execute`. */
  tool_kind: v.optional(v.string()),
  ...questionMembers,
})
export type PendingInteraction = v.InferOutput<typeof PendingInteraction>

/** Capabilities of the agent process, including its prompts. */
export const RuntimeCapabilities = v.object({
  config_options: v.optional(v.array(ConfigOption)),
  prompt_audio: v.boolean(),
  prompt_embedded_context: v.boolean(),
  prompt_image: v.boolean(),
  supported_modes: v.optional(v.array(v.string())),
  supports_load_session: v.boolean(),
})
export type RuntimeCapabilities = v.InferOutput<typeof RuntimeCapabilities>

/** A restart of the agent process in progress. */
export const RuntimeRecovery = v.object({
  attempt: Integer,
  generation: Integer,
  last_attempt_at: Timestamp,
  last_error: v.optional(v.string()),
  max_attempts: Integer,
  next_attempt_at: maybeTimestamp,
  started_at: Timestamp,
})
export type RuntimeRecovery = v.InferOutput<typeof RuntimeRecovery>

/** The process of a session: selected and effective runtime, and state. */
export const SessionRuntime = v.object({
  acp_caps: v.nullish(RuntimeCapabilities),
  acp_session_id: v.optional(v.string()),
  effective: v.nullish(
    v.object({
      model: v.optional(v.string()),
      provider: v.string(),
      reasoning_effort: v.optional(ReasoningEffort),
      speed: v.optional(Speed),
      speed_resolution: v.nullish(SpeedResolution),
    }),
  ),
  failure: v.optional(v.string()),
  generation: v.optional(Integer),
  recovery: v.nullish(RuntimeRecovery),
  selected: v.nullish(RuntimeSelection),
  selection_revision: Integer,
  status: v.string(),
  transition: v.optional(v.string()),
})
export type SessionRuntime = v.InferOutput<typeof SessionRuntime>

/** A session with its runtime and pending interactions: the reply of routes that change a session. */
export const SessionDetail = v.object({
  ...Session.entries,
  archived_at: v.nullable(Timestamp),
  attention_changed_at: maybeTimestamp,
  lineage: v.nullish(v.object({ ...SessionLineage.entries, notify_creator: v.boolean() })),
  pending_interactions: v.array(PendingInteraction),
  runtime: SessionRuntime,
  worktree_id: v.optional(v.string()),
})
export type SessionDetail = v.InferOutput<typeof SessionDetail>
