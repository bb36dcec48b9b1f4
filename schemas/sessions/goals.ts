/** Goals of sessions. */
import * as v from 'valibot'
import { Integer, Timestamp } from '../kernel/common.js'

/** Why a goal command had no effect. */
export const GoalReason = v.picklist([
  'goal_not_active',
  'goal_replace_required',
  'goal_replace_stale',
  'goal_objective_required',
  'goal_objective_too_large',
  'goal_contract_clause_empty',
  'goal_command_invalid',
  'goal_draft_requires_idle',
  'goal_evidence_too_large',
  'goal_report_conflict',
  'goal_session_busy_queue_full',
  'goal_turn_filter_invalid',
  'goal_judge_unavailable',
  'goal_judge_broken',
  'goal_judge_outcome_invalid',
  'goal_action_control_invalid',
  'goal_stop_reason_invalid',
  'goal_prompt_request_failed',
  'goal_agent_refused',
  'goal_compaction_cancelled',
  'goal_recovery_ambiguous',
  'goal_control_revoked_in_flight',
  'goal_reseed_confirmation_required',
  'goal_presubmit_retries_exhausted',
  'goal_budget_fenced',
  'goal_origin_invalid',
  'goal_origin_workspace_mismatch',
  'goal_origin_profile_unavailable',
  'goal_control_stale',
  'goal_prompt_fenced',
  'session_creation_identity_mismatch',
  'continuous_binding_mismatch',
])
export type GoalReason = v.InferOutput<typeof GoalReason>

/** Status of a goal. */
export const GoalStatus = v.picklist(['active', 'paused', 'blocked', 'usage-limited', 'budget-limited', 'complete'])
export type GoalStatus = v.InferOutput<typeof GoalStatus>

/** Status of a goal's run. */
export const GoalRunStatus = v.picklist([
  'queued',
  'running',
  'watching',
  'needs-approval',
  'paused',
  'done',
  'no-op',
  'blocked',
  'failed',
  'exhausted',
  'stalled',
  'canceled',
])
export type GoalRunStatus = v.InferOutput<typeof GoalRunStatus>

/** Usage of the model's context window. */
export const GoalContext = v.object({
  nudge_ratio: v.number(),
  ratio: v.nullable(v.number()),
  reported_at: v.nullable(Timestamp),
  size: v.nullable(Integer),
  state: v.picklist(['known', 'unknown', 'pending']),
  used: v.nullable(Integer),
})
export type GoalContext = v.InferOutput<typeof GoalContext>

/** Latest verdict of the judge. */
export const GoalVerdict = v.object({
  blocking_issues: v.array(v.object({ id: v.string(), note: v.string() })),
  evaluated_at: Timestamp,
  evidence_ref: v.nullable(v.string()),
  outcome: v.picklist(['approved', 'rejected', 'awaiting_approval', 'blocked', 'error', 'timeout', 'invalid_output']),
})
export type GoalVerdict = v.InferOutput<typeof GoalVerdict>

/** The goal of a session. */
export const GoalSnapshot = v.object({
  bound_session_id: v.string(),
  cause: v.nullable(GoalReason),
  context: GoalContext,
  contract_summary: v.string(),
  last_verdict: v.nullable(GoalVerdict),
  live: v.boolean(),
  node_id: v.string(),
  objective: v.string(),
  origin_session_id: v.string(),
  run_id: v.string(),
  run_status: GoalRunStatus,
  status: GoalStatus,
  turn_limit: Integer,
  turns_used: Integer,
})
export type GoalSnapshot = v.InferOutput<typeof GoalSnapshot>

/** GET …/goal. */
export const SessionGoalReply = v.object({ goal: v.nullable(GoalSnapshot) })
export type SessionGoalReply = v.InferOutput<typeof SessionGoalReply>

/** Result of a goal command. */
export const GoalOutcome = v.object({
  outcome: v.picklist(['started', 'replaced', 'status', 'paused', 'resumed', 'cleared', 'error']),
  reason_code: v.nullable(GoalReason),
  replaced_run_id: v.nullable(v.string()),
  snapshot: v.nullable(GoalSnapshot),
})
export type GoalOutcome = v.InferOutput<typeof GoalOutcome>
