/** What the holder of a run is told of it, of its task, and of what was done before. */
import * as v from 'valibot'
import { Integer, Timestamp } from '../kernel/common.js'
import { TaskSummary } from './definitions.js'
import { ExecutionProfile } from './profile.js'
import { ReviewStatus } from './reviews.js'
import { ActiveRun, TaskLease } from './run.js'
import { TimelineEntry } from './views.js'

/** A run with all its times; one that has not come is `0001-01-01T00:00:00Z`. */
export const DatedRun = v.object({
  ...ActiveRun.entries,
  claimed_at: Timestamp,
  started_at: Timestamp,
  ended_at: Timestamp,
  heartbeat_at: Timestamp,
  lease_until: Timestamp,
})
export type DatedRun = v.InferOutput<typeof DatedRun>

/** A review that an earlier run of the task had. */
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

/** What a reviewer wants of the run that goes on. */
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

/** The run and its task, bounded as the settings of `task.orchestration` say. */
export const TaskBundle = v.object({
  task: TaskSummary,
  current_run: v.nullish(DatedRun),
  execution_profile: v.nullish(ExecutionProfile),
  /** What the run before it left: its result, else its error. */
  handoff_summary: v.optional(v.string()),
  latest_event_seq: Integer,
  limits: v.object({
    context_body_max_bytes: Integer,
    max_runtime_seconds: Integer,
    summary_max_bytes: Integer,
  }),
  /** The newest first. */
  prior_attempts: v.array(DatedRun),
  /** The oldest first. Payloads that are too large together are left out of the oldest. */
  recent_events: v.array(v.object({ ...TimelineEntry.entries, run: v.nullish(DatedRun) })),
  review_continuation: v.nullish(ReviewContinuation),
  review_history: v.array(PastReview),
})
export type TaskBundle = v.InferOutput<typeof TaskBundle>

/** What a session works on now; `available`: it holds a run. */
export const TaskSituation = v.object({
  available: v.boolean(),
  bundle: v.nullish(TaskBundle),
  lease: v.nullish(TaskLease),
  task: v.nullish(TaskSummary),
})
export type TaskSituation = v.InferOutput<typeof TaskSituation>
