/** Reviews: another session or a person judges the outcome of a run. */
import * as v from 'valibot'
import { Integer, queryInteger, Timestamp } from '../kernel/common.js'
import { TaskActor } from './definitions.js'
import { TaskRun } from './run.js'

export const ReviewStatus = v.picklist(['requested', 'routed', 'in_review', 'recorded', 'circuit_opened', 'canceled'])
export type ReviewStatus = v.InferOutput<typeof ReviewStatus>

/** Run outcomes that are reviewed. */
export const ReviewPolicy = v.picklist(['none', 'always', 'on_success', 'on_failure'])
export type ReviewPolicy = v.InferOutput<typeof ReviewPolicy>

/** Outcome of a review. The last three mean that there is no judgement of the run. */
export const ReviewOutcome = v.picklist(['approved', 'rejected', 'blocked', 'error', 'timeout', 'invalid_output'])
export type ReviewOutcome = v.InferOutput<typeof ReviewOutcome>

/** A review; a time that is not set is `0001-01-01T00:00:00Z`. */
export const TaskReview = v.object({
  review_id: v.string(),
  task_id: v.string(),
  run_id: v.string(),
  attempt: Integer,
  review_round: Integer,
  parent_review_id: v.optional(v.string()),
  policy: ReviewPolicy,
  status: ReviewStatus,
  reason: v.optional(v.string()),
  outcome: v.optional(ReviewOutcome),
  confidence: v.nullish(v.number()),
  missing_work: v.optional(v.unknown()),
  next_round_guidance: v.optional(v.string()),
  review_text: v.optional(v.string()),
  delivery_id: v.optional(v.string()),
  reviewed_by: v.nullish(TaskActor),
  reviewer_agent_name: v.optional(v.string()),
  reviewer_channel_id: v.optional(v.string()),
  reviewer_peer_id: v.optional(v.string()),
  reviewer_session_id: v.optional(v.string()),
  created_at: Timestamp,
  requested_at: Timestamp,
  routed_at: Timestamp,
  started_at: Timestamp,
  reviewed_at: Timestamp,
  deadline_at: Timestamp,
  updated_at: Timestamp,
})
export type TaskReview = v.InferOutput<typeof TaskReview>

/** POST /api/task-runs/{id}/reviews. */
export const RequestReviewBody = v.strictObject({
  run_id: v.pipe(v.string(), v.description('run ID; must match the path')),
  task_id: v.pipe(v.string(), v.description('ID of the task of the run')),
  deadline_at: v.pipe(Timestamp, v.description('deadline; without a verdict by then the outcome is timeout')),
  policy: v.optional(v.pipe(ReviewPolicy, v.description('run outcomes to review; default always'))),
  reason: v.optional(v.pipe(v.string(), v.description('what to review'))),
  attempt: v.optional(v.pipe(Integer, v.description('attempt of the run; must match'))),
  review_round: v.optional(
    v.pipe(Integer, v.description('review round; default: one after the parent review, else 1')),
  ),
  parent_review_id: v.optional(v.pipe(v.string(), v.description('ID of the review that this one follows'))),
})
export type RequestReviewBody = v.InferOutput<typeof RequestReviewBody>

/** POST /api/task-reviews/{id}/verdict. */
export const VerdictBody = v.strictObject({
  run_id: v.string(),
  verdict: v.strictObject({
    outcome: ReviewOutcome,
    reason: v.string(),
    confidence: v.nullable(v.number()),
    delivery_id: v.pipe(v.string(), v.description('idempotency key; the same delivery is recorded once')),
    missing_work: v.optional(v.pipe(v.unknown(), v.description('missing work as JSON, at most 8 KiB'))),
    next_round_guidance: v.optional(v.string()),
    review_text: v.optional(v.string()),
  }),
})
export type VerdictBody = v.InferOutput<typeof VerdictBody>

/** POST /api/task-reviews/{id}/route. */
export const RouteReviewBody = v.strictObject({
  session_id: v.pipe(v.string(), v.description('ID of the reviewing session; not the session that worked on the run')),
})
export type RouteReviewBody = v.InferOutput<typeof RouteReviewBody>

export const ListReviewsQuery = v.object({
  status: v.optional(v.pipe(ReviewStatus, v.description('show only reviews with this status'))),
  reviewer_session_id: v.optional(v.pipe(v.string(), v.description('show only reviews assigned to this session'))),
  limit: v.optional(v.pipe(queryInteger(1, 200), v.description('maximum number of results; default 50, at most 200'))),
})
export type ListReviewsQuery = v.InferOutput<typeof ListReviewsQuery>

export const ReviewReply = v.object({ review: TaskReview })
export const ReviewsReply = v.object({ reviews: v.array(TaskReview) })
/** `created` is false when the review already existed. */
export const ReviewRequestReply = v.object({ review: TaskReview, created: v.boolean() })
export type ReviewRequestReply = v.InferOutput<typeof ReviewRequestReply>
export const VerdictReply = v.object({
  review: TaskReview,
  /** No run is queued; the task needs attention. */
  circuit_opened: v.optional(v.boolean()),
  /** The run that was queued because of the rejection. */
  continuation_run: v.nullish(TaskRun),
})
export type VerdictReply = v.InferOutput<typeof VerdictReply>
