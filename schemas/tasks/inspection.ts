/** Inspection of a task or a run: why it is not progressing and what to do next. */
import * as v from 'valibot'
import { Integer, maybeTimestamp, Timestamp } from '../kernel/common.js'
import { DiagnosticItem } from '../kernel/diagnostic.js'
import { TaskSummary } from './definitions.js'
import { TaskOverview, TaskRun, TaskRunStatus } from './run.js'

const ParticipationStatus = v.object({
  available: v.boolean(),
  participating: v.boolean(),
  reason: v.optional(v.string()),
  owner: v.object({
    id: v.string(),
    kind: v.picklist(['session', 'task_run', 'loop_run', 'automation_run']),
    workspace_id: v.string(),
  }),
})

/** Network usage of a run. */
export const ConversationUsage = v.object({
  workspace_id: v.string(),
  budget: v.nullish(
    v.object({
      exhausted_reason: v.optional(v.string()),
      input_tokens_used: Integer,
      output_tokens_used: Integer,
      participation_status: ParticipationStatus,
      updated_at: Timestamp,
      wakes_used: Integer,
      wall_time_used: v.string(),
    }),
  ),
  details: v.array(
    v.object({
      channel: v.string(),
      charged_wall_time: v.string(),
      depth: Integer,
      input_tokens: Integer,
      output_tokens: Integer,
      participation_status: ParticipationStatus,
      reason: v.optional(v.string()),
      reserved_at: Timestamp,
      root_id: v.string(),
      settled_at: maybeTimestamp,
      state: v.string(),
      task_run_id: v.string(),
      usage_state: v.string(),
      wake_id: v.string(),
      workspace_id: v.string(),
    }),
  ),
  next_cursor: v.optional(v.string()),
  total: v.object({
    actual_wake_count: Integer,
    charged_wall_time: v.string(),
    input_tokens: Integer,
    output_tokens: Integer,
    reserved_wake_count: Integer,
    unavailable_wake_count: Integer,
    wake_count: Integer,
  }),
})
export type ConversationUsage = v.InferOutput<typeof ConversationUsage>

/** A run with its task and its session. */
export const RunDetailReply = v.object({
  run: v.object({
    run: TaskRun,
    task: v.nullish(TaskSummary),
    /** The latest session that the daemon started for the run, and its error if it failed. */
    worker: v.optional(
      v.object({
        session_id: v.optional(v.string()),
        started_at: Timestamp,
        ended_at: maybeTimestamp,
        error: v.optional(v.string()),
      }),
    ),
    /** The worktree of that session; the result is on the branch. */
    worktree: v.optional(
      v.object({
        name: v.string(),
        folder: v.string(),
        branch: v.optional(v.string()),
        commit: v.optional(v.string()),
      }),
    ),
    session: v.nullish(
      v.object({
        session_id: v.string(),
        agent_name: v.optional(v.string()),
        name: v.optional(v.string()),
        state: v.optional(v.string()),
        workspace_id: v.optional(v.string()),
        created_at: Timestamp,
        updated_at: Timestamp,
      }),
    ),
    summary: v.object({
      last_activity_at: Timestamp,
      last_event_type: v.optional(v.string()),
      turn_count: v.nullish(Integer),
      tool_call_count: v.nullish(Integer),
      input_tokens: v.nullish(Integer),
      output_tokens: v.nullish(Integer),
      total_tokens: v.nullish(Integer),
      total_cost: v.nullish(v.number()),
      cost_currency: v.nullish(v.string()),
      cost_source: v.optional(v.picklist(['agent_reported', 'catalog_config', 'models_dev', 'builtin', 'none'])),
      cost_status: v.optional(v.picklist(['actual', 'estimated', 'included', 'unknown'])),
    }),
    network: v.nullish(
      v.object({
        conversation: v.object({
          channel: v.string(),
          stream_url: v.string(),
          surface: v.string(),
          thread_id: v.string(),
          workspace_id: v.string(),
        }),
        usage: ConversationUsage,
      }),
    ),
  }),
})
export type RunDetailReply = v.InferOutput<typeof RunDetailReply>

/** The main members of a run; ages in seconds. */
export const InspectedRun = v.object({
  run_id: v.string(),
  task_id: v.string(),
  status: TaskRunStatus,
  attempt: Integer,
  retries: v.optional(Integer),
  previous_run_id: v.optional(v.string()),
  bound_session_id: v.optional(v.string()),
  claim_token_hash_truncated: v.optional(v.string()),
  queued_at: Timestamp,
  started_at: maybeTimestamp,
  ended_at: maybeTimestamp,
  heartbeat_at: maybeTimestamp,
  heartbeat_age_seconds: v.nullish(Integer),
  lease_until: maybeTimestamp,
  failure_kind: v.optional(v.string()),
  last_error_summary: v.optional(v.string()),
})
export type InspectedRun = v.InferOutput<typeof InspectedRun>

/** GET of the inspection of a task or a run. */
export const InspectReply = v.object({
  inspect: v.object({
    target: v.string(),
    as_of: Timestamp,
    /** Why the task or run is not progressing. */
    why: v.optional(v.string()),
    /** The command to run next, or what the task is waiting for. */
    next_action: v.string(),
    task: TaskOverview,
    current_run: v.nullish(InspectedRun),
    recent_runs: v.optional(v.array(InspectedRun)),
    bound_session: v.nullish(
      v.object({
        session_id: v.string(),
        agent_name: v.optional(v.string()),
        provider_name: v.optional(v.string()),
        workspace_id: v.optional(v.string()),
        state: v.optional(v.string()),
        stop_reason: v.optional(v.string()),
        failure_kind: v.optional(v.string()),
        started_at: maybeTimestamp,
        last_activity_at: maybeTimestamp,
      }),
    ),
    recent_events: v.optional(
      v.array(
        v.object({
          id: v.string(),
          type: v.string(),
          task_id: v.optional(v.string()),
          run_id: v.optional(v.string()),
          session_id: v.optional(v.string()),
          outcome: v.optional(v.string()),
          summary: v.optional(v.string()),
          timestamp: Timestamp,
        }),
      ),
    ),
    scheduler: v.object({
      paused: v.boolean(),
      paused_at: maybeTimestamp,
      paused_by: v.optional(v.string()),
      reason: v.optional(v.string()),
      updated_at: maybeTimestamp,
    }),
    diagnostics: v.optional(v.array(DiagnosticItem)),
  }),
})
export type InspectReply = v.InferOutput<typeof InspectReply>
