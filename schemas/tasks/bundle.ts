/** The context of a run for its lease holder: the task, earlier attempts, reviews and recent events. */
import * as v from 'valibot'
import { Integer, Timestamp } from '../kernel/common.js'
import { TaskSummary } from './definitions.js'
import { ExecutionProfile } from './profile.js'
import { ReviewStatus } from './reviews.js'
import { ActiveRun, TaskLease } from './run.js'
import { TimelineEntry } from './views.js'

/** A run with all its times; a time that is not set is `0001-01-01T00:00:00Z`. */
export const DatedRun = v.object({
  ...ActiveRun.entries,
  claimed_at: Timestamp,
  started_at: Timestamp,
  ended_at: Timestamp,
  heartbeat_at: Timestamp,
  lease_until: Timestamp,
  /** Reported by its agents while a budget applied; absent when nothing was reported. */
  tokens_used: v.optional(Integer),
})
export type DatedRun = v.InferOutput<typeof DatedRun>

/** A review of an earlier run. */
const PastReview = v.object({
  review_id: v.string(),
  run_id: v.string(),
  attempt: Integer,
  review_round: Integer,
  status: ReviewStatus,
  outcome: v.optional(v.string()),
  reason: v.optional(v.string()),
  reviewed_at: v.optional(v.string()),
  reviewer_label: v.optional(v.string()),
})

/** The verdict that caused this run. */
export const ReviewContinuation = v.object({
  review_id: v.string(),
  review_round: Integer,
  reviewed_run_id: v.string(),
  outcome: v.string(),
  reason: v.string(),
  next_round_guidance: v.string(),
  missing_work: v.array(v.string()),
})
export type ReviewContinuation = v.InferOutput<typeof ReviewContinuation>

/** The context of a run, bounded by the settings in `task.orchestration`. */
export const TaskBundle = v.object({
  task: TaskSummary,
  current_run: v.nullish(DatedRun),
  execution_profile: v.nullish(ExecutionProfile),
  /** Result, or else error, of the previous run. */
  handoff_summary: v.optional(v.string()),
  latest_event_seq: Integer,
  limits: v.object({
    context_body_max_bytes: Integer,
    max_runtime_seconds: Integer,
    summary_max_bytes: Integer,
  }),
  /** Newest first. */
  prior_attempts: v.array(DatedRun),
  /** Oldest first. When the payloads exceed the limit, the oldest events have none. */
  recent_events: v.array(v.object({ ...TimelineEntry.entries, run: v.nullish(DatedRun) })),
  review_continuation: v.nullish(ReviewContinuation),
  review_history: v.array(PastReview),
})
export type TaskBundle = v.InferOutput<typeof TaskBundle>

/** The current work of a session; `available`: it holds a lease. */
export const TaskSituation = v.object({
  available: v.boolean(),
  bundle: v.nullish(TaskBundle),
  lease: v.nullish(TaskLease),
  task: v.nullish(TaskSummary),
})
export type TaskSituation = v.InferOutput<typeof TaskSituation>
