/** Routes of sessions. In comments, … abbreviates /api/workspaces/{workspace_id}/sessions/{session_id}. */
import * as v from 'valibot'
import { PermissionMode, ReasoningEffort } from './agents.js'
import { Integer, Page, queryBoolean, queryInteger, Timestamp } from './kernel/common.js'
import { ParticipationRequest } from './network.js'
import { SessionEvent, TranscriptEntry } from './sessions/events.js'
import { SessionDetail } from './sessions/runtime.js'
import {
  HealthLevel,
  HealthState,
  Session,
  SessionHealth,
  SessionState,
  Speed,
  WakeIneligibility,
} from './sessions/session.js'
import { WakeState } from './sessions/wake.js'

export * from './sessions/attention.js'
export * from './sessions/clarifications.js'
export * from './sessions/events.js'
export * from './sessions/goals.js'
export * from './sessions/inbox.js'
export * from './sessions/inspection.js'
export * from './sessions/prompts.js'
export * from './sessions/questions.js'
export * from './sessions/rewind.js'
export * from './sessions/runtime.js'
export * from './sessions/session.js'
export * from './sessions/ui-stream.js'
export * from './sessions/wake.js'

/** GET /api/sessions. */
export const ListSessionsQuery = v.object({
  workspace: v.optional(v.string()),
  include_health: v.optional(queryBoolean()),
  state: v.optional(SessionState),
  type: v.optional(v.picklist(['user', 'system', 'coordinator', 'spawned'])),
  agent: v.optional(v.string()),
  q: v.optional(v.string()),
  resumable: v.optional(queryBoolean()),
  /** List archived sessions instead of the others. */
  archived: v.optional(queryBoolean()),
  sort: v.optional(v.picklist(['recent', 'last_activity'])),
  cursor: v.optional(v.string()),
  limit: v.optional(queryInteger(0)),
})
export type ListSessionsQuery = v.InferOutput<typeof ListSessionsQuery>

/** GET /api/sessions. */
export const ListSessionsReply = v.object({ page: Page, sessions: v.array(Session) })
export type ListSessionsReply = v.InferOutput<typeof ListSessionsReply>

/** POST /api/sessions: `workspace` (id or name) or `workspace_path`; a first `prompt` is queued. */
export const CreateSessionBody = v.strictObject({
  name: v.optional(v.string()),
  agent_name: v.optional(v.string()),
  model: v.optional(v.string()),
  network_participation: v.nullish(ParticipationRequest),
  /** Overrides the agent's permission mode for this session. */
  permissions: v.optional(PermissionMode),
  prompt: v.optional(v.string()),
  provider: v.optional(v.string()),
  /** Sandbox profile; `none`: no sandbox. Default: as configured. */
  sandbox: v.optional(v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9_-]{0,63}$/))),
  reasoning_effort: v.optional(ReasoningEffort),
  speed: v.optional(Speed),
  workspace: v.optional(v.string()),
  workspace_path: v.optional(v.string()),
})
export type CreateSessionBody = v.InferOutput<typeof CreateSessionBody>

/** GET of one session. */
export const GetSessionQuery = v.object({ include_health: v.optional(queryBoolean()) })
export type GetSessionQuery = v.InferOutput<typeof GetSessionQuery>

/** GET and POST of one session. */
export const SessionReply = v.object({ session: Session })
export type SessionReply = v.InferOutput<typeof SessionReply>

/** GET /api/sessions/{session_id}/owner. */
export const SessionOwnerReply = v.object({
  session_id: v.string(),
  workspace_id: v.string(),
  workspace_name: v.string(),
})
export type SessionOwnerReply = v.InferOutput<typeof SessionOwnerReply>

/**
 * PATCH of a session: changes its name (empty for none), its permission mode from now on, or the agent's own mode until its process
 * ends.
 */
export const PatchSessionBody = v.strictObject({
  name: v.string(),
  permissions: v.optional(PermissionMode),
  agent_mode: v.optional(v.pipe(v.string(), v.maxLength(200))),
})
export type PatchSessionBody = v.InferOutput<typeof PatchSessionBody>

/** PATCH of a session. */
export const SessionDetailReply = v.object({ session: SessionDetail })
export type SessionDetailReply = v.InferOutput<typeof SessionDetailReply>

/** GET …/events and …/history: the newest `limit` (200, at most 1000), in ascending order. */
export const ListSessionEventsQuery = v.object({
  since: v.optional(Timestamp),
  limit: v.optional(queryInteger(0)),
  after_sequence: v.optional(queryInteger(0)),
  type: v.optional(v.string()),
  agent_name: v.optional(v.string()),
  turn_id: v.optional(v.string()),
})
export type ListSessionEventsQuery = v.InferOutput<typeof ListSessionEventsQuery>

/** GET …/events. */
export const ListSessionEventsReply = v.object({ events: v.array(SessionEvent) })
export type ListSessionEventsReply = v.InferOutput<typeof ListSessionEventsReply>

/** The events of one turn. */
export const SessionTurn = v.object({ events: v.array(SessionEvent), turn_id: v.string() })
export type SessionTurn = v.InferOutput<typeof SessionTurn>

/** GET …/history. */
export const SessionHistoryReply = v.object({ history: v.array(SessionTurn) })
export type SessionHistoryReply = v.InferOutput<typeof SessionHistoryReply>

/** GET …/transcript: the page that ends before a sequence. */
export const TranscriptQuery = v.object({
  limit: v.optional(queryInteger(0)),
  before_sequence: v.optional(queryInteger(0)),
})
export type TranscriptQuery = v.InferOutput<typeof TranscriptQuery>

/** GET …/transcript. */
export const TranscriptReply = v.object({
  entries: v.array(TranscriptEntry),
  epoch: Integer,
  generation: Integer,
  has_older: v.boolean(),
  limit: Integer,
  max_sequence: Integer,
  next_before_sequence: v.optional(Integer),
})
export type TranscriptReply = v.InferOutput<typeof TranscriptReply>

/** GET …/stream: frames of the transcript, or the raw stored events. */
export const SessionStreamQuery = v.object({
  after_sequence: v.optional(queryInteger(0)),
  frames: v.optional(v.picklist(['raw', 'transcript'])),
  epoch: v.optional(queryInteger(0)),
  generation: v.optional(queryInteger(0)),
  limit: v.optional(queryInteger(0)),
})
export type SessionStreamQuery = v.InferOutput<typeof SessionStreamQuery>

/** Headers of GET …/stream: the position to resume after. */
export const SessionStreamHeaders = v.object({ 'last-event-id': v.optional(v.string()) })
export type SessionStreamHeaders = v.InferOutput<typeof SessionStreamHeaders>

/** GET …/status. */
export const SessionStatusReply = v.object({
  active_prompt: v.boolean(),
  agent_name: v.string(),
  attachable: v.boolean(),
  eligible_for_wake: v.boolean(),
  health: HealthLevel,
  ineligibility_reason: v.optional(WakeIneligibility),
  session_id: v.string(),
  state: HealthState,
  wake_state: v.nullish(WakeState),
  workspace_id: v.string(),
  updated_at: Timestamp,
})
export type SessionStatusReply = v.InferOutput<typeof SessionStatusReply>

/** GET …/health. */
export const SessionHealthReply = v.object({ health: SessionHealth })
export type SessionHealthReply = v.InferOutput<typeof SessionHealthReply>

/** POST …/repair. */
export const RepairSessionQuery = v.object({ dry_run: v.optional(queryBoolean()), force: v.optional(queryBoolean()) })
export type RepairSessionQuery = v.InferOutput<typeof RepairSessionQuery>

/** A repair of an interrupted transcript, made or proposed. */
export const RepairAction = v.object({
  code: v.string(),
  event_id: v.optional(v.string()),
  persisted: v.boolean(),
  tool_call_id: v.optional(v.string()),
  tool_name: v.optional(v.string()),
  turn_id: v.string(),
})
export type RepairAction = v.InferOutput<typeof RepairAction>

/** An inconsistency. */
export const RepairIssue = v.object({
  code: v.string(),
  detail: v.optional(v.string()),
  event_id: v.optional(v.string()),
  severity: v.string(),
  turn_id: v.optional(v.string()),
})
export type RepairIssue = v.InferOutput<typeof RepairIssue>

/** POST …/repair. */
export const RepairSessionReply = v.object({
  repair: v.object({
    actions: v.array(RepairAction),
    issues: v.array(RepairIssue),
    persisted: v.boolean(),
    session_id: v.string(),
  }),
})
export type RepairSessionReply = v.InferOutput<typeof RepairSessionReply>

/** POST …/wait: block until one of the states in `until`, at most `timeout_ms`. */
export const WaitSessionBody = v.strictObject({
  epoch: v.optional(Integer),
  resume_id: v.optional(v.string()),
  timeout_ms: Integer,
  until: v.optional(v.array(v.string())),
})
export type WaitSessionBody = v.InferOutput<typeof WaitSessionBody>

/** POST …/wait; `resume_id` continues an unfinished wait. */
export const WaitSessionReply = v.object({
  outcome: v.string(),
  resume_id: v.optional(v.string()),
  revision: Integer,
  session_id: v.string(),
  state: v.optional(v.string()),
  until: v.optional(v.array(v.string())),
  waited_ms: Integer,
})
export type WaitSessionReply = v.InferOutput<typeof WaitSessionReply>

/** POST …/attach. */
export const AttachSessionBody = v.strictObject({
  attached_to: v.optional(v.string()),
  ttl_seconds: v.optional(Integer),
  /** Attach even if another client is attached, which is then detached. */
  take_over: v.optional(v.boolean()),
})
export type AttachSessionBody = v.InferOutput<typeof AttachSessionBody>

/** POST …/attach. */
export const AttachSessionReply = v.object({
  attach: v.object({
    attach_expires_at: Timestamp,
    attached_at: Timestamp,
    attached_to: v.string(),
    session_id: v.string(),
  }),
  session: Session,
})
export type AttachSessionReply = v.InferOutput<typeof AttachSessionReply>

/** POST …/steer; answered with a receipt. */
export const SteerSessionBody = v.strictObject({ text: v.string() })
export type SteerSessionBody = v.InferOutput<typeof SteerSessionBody>

/** GET …/usage. */
export const SessionUsageReply = v.object({
  usage: v.object({
    cost_currency: v.optional(v.string()),
    cost_source: v.optional(v.picklist(['agent_reported', 'catalog_config', 'models_dev', 'builtin', 'none'])),
    cost_status: v.optional(v.picklist(['actual', 'estimated', 'included', 'unknown'])),
    input_tokens: v.nullish(Integer),
    output_tokens: v.nullish(Integer),
    total_cost: v.nullish(v.number()),
    total_tokens: v.nullish(Integer),
    turn_count: Integer,
  }),
  /** The most recent active days, UTC. */
  days: v.optional(
    v.array(
      v.object({
        date: v.string(),
        turns: Integer,
        tokens: v.nullable(Integer),
        cost: v.nullable(v.number()),
        currency: v.nullable(v.string()),
      }),
    ),
  ),
})
export type SessionUsageReply = v.InferOutput<typeof SessionUsageReply>
