/** Reviews of runs: somebody else looks at what a run has made, and says what he thinks of it. */
import * as v from 'valibot'
import { Integer, queryInteger, Timestamp } from '../kernel/common.js'
import { TaskActor } from './definitions.js'
import { TaskRun } from './run.js'

export const ReviewStatus = v.picklist(['requested', 'routed', 'in_review', 'recorded', 'circuit_opened', 'canceled'])
export type ReviewStatus = v.InferOutput<typeof ReviewStatus>

/** Which runs are to be reviewed, by how they ended. */
export const ReviewPolicy = v.picklist(['none', 'always', 'on_success', 'on_failure'])
export type ReviewPolicy = v.InferOutput<typeof ReviewPolicy>

/** What a review came to. The last three say that it came to nothing. */
export const ReviewOutcome = v.picklist(['approved', 'rejected', 'blocked', 'error', 'timeout', 'invalid_output'])
export type ReviewOutcome = v.InferOutput<typeof ReviewOutcome>

/** A review; a time that has not come is `0001-01-01T00:00:00Z`. */
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
  run_id: v.pipe(v.string(), v.description('the same run as in the path')),
  task_id: v.string(),
  deadline_at: v.pipe(Timestamp, v.description('without a verdict by then the review comes to nothing')),
  policy: v.optional(v.pipe(ReviewPolicy, v.description('default always'))),
  reason: v.optional(v.string()),
  attempt: v.optional(Integer),
  review_round: v.optional(v.pipe(Integer, v.description('default: that after the parent review, else 1'))),
  parent_review_id: v.optional(v.string()),
})
export type RequestReviewBody = v.InferOutput<typeof RequestReviewBody>

/** POST /api/task-reviews/{id}/verdict. */
export const VerdictBody = v.strictObject({
  run_id: v.string(),
  verdict: v.strictObject({
    outcome: ReviewOutcome,
    reason: v.string(),
    confidence: v.nullable(v.number()),
    delivery_id: v.pipe(v.string(), v.description('the same verdict with the same id is recorded once')),
    missing_work: v.optional(v.pipe(v.unknown(), v.description('JSON, at most 8 KiB'))),
    next_round_guidance: v.optional(v.string()),
    review_text: v.optional(v.string()),
  }),
})
export type VerdictBody = v.InferOutput<typeof VerdictBody>

/** POST /api/task-reviews/{id}/route. */
export const RouteReviewBody = v.strictObject({
  session_id: v.pipe(v.string(), v.description('the session that is to review, which is not the one that worked')),
})
export type RouteReviewBody = v.InferOutput<typeof RouteReviewBody>

export const ListReviewsQuery = v.object({
  status: v.optional(ReviewStatus),
  reviewer_session_id: v.optional(v.string()),
  limit: v.optional(queryInteger(1, 200)),
})
export type ListReviewsQuery = v.InferOutput<typeof ListReviewsQuery>

export const ReviewReply = v.object({ review: TaskReview })
export const ReviewsReply = v.object({ reviews: v.array(TaskReview) })
/** `created` is false for a review that was asked for before. */
export const ReviewRequestReply = v.object({ review: TaskReview, created: v.boolean() })
export type ReviewRequestReply = v.InferOutput<typeof ReviewRequestReply>
export const VerdictReply = v.object({
  review: TaskReview,
  /** Nothing more is tried by itself; a person looks at the task. */
  circuit_opened: v.optional(v.boolean()),
  /** The run that goes on with what was rejected. */
  continuation_run: v.nullish(TaskRun),
})
export type VerdictReply = v.InferOutput<typeof VerdictReply>
