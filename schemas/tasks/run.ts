/** Runs of tasks, and the leases under which sessions hold them. */
import * as v from 'valibot'
import { Integer, maybeTimestamp, Timestamp } from '../kernel/common.js'
import { ResolvedParticipation } from '../network.js'
import { Dependency, TaskActor, TaskOrigin, TaskSummary, taskOverview } from './definitions.js'

/** Run statuses. `needs_attention` is open: an operator has to recover or cancel the run. */
export const TaskRunStatus = v.picklist([
  'queued',
  'claimed',
  'starting',
  'running',
  'completed',
  'failed',
  'canceled',
  'needs_attention',
])
export type TaskRunStatus = v.InferOutput<typeof TaskRunStatus>

/** Network channel for the agents of one run. */
export const CoordinationChannel = v.object({
  id: v.string(),
  display_name: v.string(),
  purpose: v.optional(v.string()),
  run_id: v.optional(v.string()),
  task_id: v.optional(v.string()),
  workflow_id: v.optional(v.string()),
  workspace_id: v.optional(v.string()),
  last_activity_at: maybeTimestamp,
  allowed_message_kinds: v.array(
    v.picklist(['status', 'request', 'reply', 'blocker', 'handoff', 'result', 'review_request']),
  ),
})
export type CoordinationChannel = v.InferOutput<typeof CoordinationChannel>

/** The part of the work that a run of a fan-out does. */
export const Designation = v.object({ brief: v.optional(v.string()), index: Integer })
export type Designation = v.InferOutput<typeof Designation>

const timesAndHolder = {
  id: v.string(),
  task_id: v.string(),
  status: TaskRunStatus,
  attempt: Integer,
  recovery_count: Integer,
  previous_run_id: v.optional(v.string()),
  session_id: v.optional(v.string()),
  claimed_by: v.nullish(TaskActor),
  queued_at: Timestamp,
  claimed_at: maybeTimestamp,
  started_at: maybeTimestamp,
  ended_at: maybeTimestamp,
  heartbeat_at: maybeTimestamp,
  lease_until: maybeTimestamp,
  error: v.optional(v.string()),
  failure_kind: v.optional(v.string()),
  resolved_network_participation: v.nullish(ResolvedParticipation),
}

const held = {
  ...timesAndHolder,
  /** `sha256:` and hex; the token itself never leaves the daemon. */
  claim_token_hash: v.optional(v.string()),
  coordination_channel: v.nullish(CoordinationChannel),
  designation: v.nullish(Designation),
  designation_group_id: v.optional(v.string()),
}

/** One attempt at a task. */
export const TaskRun = v.object({
  ...held,
  /** Absent: it does the work itself. A coordinator leads the other runs of its `designation_group_id`. */
  kind: v.optional(v.picklist(['coordinator'])),
  origin: TaskOrigin,
  idempotency_key: v.optional(v.string()),
  metadata: v.optional(v.unknown()),
  result: v.optional(v.unknown()),
})
export type TaskRun = v.InferOutput<typeof TaskRun>

/** The open run of a task, as lists show it. */
export const ActiveRun = v.object({ ...held, max_attempts: Integer })
export type ActiveRun = v.InferOutput<typeof ActiveRun>

/** The open run in an inbox, without the members that only the lease holder needs. */
export const InboxRun = v.object({ ...timesAndHolder, max_attempts: Integer })
export type InboxRun = v.InferOutput<typeof InboxRun>

/** The lease of a session on a run. */
export const TaskLease = v.object({
  run_id: v.string(),
  task_id: v.string(),
  session_id: v.optional(v.string()),
  status: TaskRunStatus,
  claim_token_hash: v.optional(v.string()),
  claimed_by: v.nullish(TaskActor),
  heartbeat_at: maybeTimestamp,
  lease_until: maybeTimestamp,
  coordination_channel: v.nullish(CoordinationChannel),
  resolved_network_participation: v.nullish(ResolvedParticipation),
})
export type TaskLease = v.InferOutput<typeof TaskLease>

/** Reply to a successful claim. */
export const TaskClaim = v.object({
  lease: TaskLease,
  run: TaskRun,
  task: TaskSummary,
  coordination_channel: v.nullish(CoordinationChannel),
})
export type TaskClaim = v.InferOutput<typeof TaskClaim>

/** A task as details and trees show it. */
export const TaskOverview = v.object({
  ...taskOverview,
  active_run: v.nullish(ActiveRun),
  child_count: v.optional(Integer),
  dependency_count: v.optional(Integer),
  dependencies: v.optional(v.array(Dependency)),
  last_activity_at: maybeTimestamp,
})
export type TaskOverview = v.InferOutput<typeof TaskOverview>

/** A task as the catalog lists it. */
export const TaskItem = v.object({
  ...TaskOverview.entries,
  active_run: v.nullish(InboxRun),
})
export type TaskItem = v.InferOutput<typeof TaskItem>
