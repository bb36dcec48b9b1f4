/** Tasks, dependencies, blocks, owners and actors. */
import * as v from 'valibot'
import { Integer, maybeTimestamp, Timestamp } from '../kernel/common.js'
import { ResolvedParticipation } from '../network.js'

/** Owner of a task. */
export const Owner = v.strictObject({
  kind: v.picklist(['human', 'agent_session', 'automation', 'extension', 'network_peer', 'pool']),
  ref: v.string(),
})
export type Owner = v.InferOutput<typeof Owner>

/** Actor of an operation. */
export const TaskActor = v.object({
  kind: v.picklist(['human', 'agent_session', 'automation', 'extension', 'network_peer', 'daemon']),
  ref: v.string(),
})
export type TaskActor = v.InferOutput<typeof TaskActor>

/** The channel through which a request came. */
export const TaskOrigin = v.object({
  kind: v.picklist(['cli', 'web', 'uds', 'http', 'automation', 'extension', 'network', 'agent_session', 'daemon']),
  ref: v.string(),
})
export type TaskOrigin = v.InferOutput<typeof TaskOrigin>

/** Task statuses. All except `draft` and `canceled` are derived from the runs, dependencies and blocks of the task. */
export const TaskStatus = v.picklist([
  'draft',
  'pending',
  'blocked',
  'needs_attention',
  'ready',
  'in_progress',
  'completed',
  'failed',
  'canceled',
])
export type TaskStatus = v.InferOutput<typeof TaskStatus>

export const TaskPriority = v.picklist(['low', 'medium', 'high', 'urgent'])
export type TaskPriority = v.InferOutput<typeof TaskPriority>

/** Scope of a task. */
export const TaskScope = v.picklist(['global', 'workspace'])
export type TaskScope = v.InferOutput<typeof TaskScope>

export const ApprovalPolicy = v.picklist(['none', 'manual'])
export type ApprovalPolicy = v.InferOutput<typeof ApprovalPolicy>

export const ApprovalState = v.picklist(['not_required', 'pending', 'approved', 'rejected'])
export type ApprovalState = v.InferOutput<typeof ApprovalState>

export const BlockKind = v.picklist(['needs_input', 'capability', 'transient'])
export type BlockKind = v.InferOutput<typeof BlockKind>

/** A block: while it is open, no run of the task can be claimed. */
export const TaskBlock = v.object({
  id: v.string(),
  task_id: v.string(),
  workspace_id: v.optional(v.string()),
  kind: BlockKind,
  reason: v.string(),
  details: v.optional(v.unknown()),
  created_at: Timestamp,
  created_by: TaskActor,
  expires_at: maybeTimestamp,
  cleared_at: maybeTimestamp,
  cleared_by: v.nullish(TaskActor),
  clear_note: v.optional(v.string()),
})
export type TaskBlock = v.InferOutput<typeof TaskBlock>

/** One current reason why a task is blocked. */
export const BlockedReason = v.object({
  source: v.picklist(['dependency', 'approval', 'paused', 'block']),
  block_id: v.optional(v.string()),
  depends_on_task_ids: v.optional(v.array(v.string())),
  kind: v.optional(BlockKind),
  reason: v.optional(v.string()),
})
export type BlockedReason = v.InferOutput<typeof BlockedReason>

/** The main members of a task. */
export const TaskSummary = v.object({
  id: v.string(),
  identifier: v.optional(v.string()),
  title: v.string(),
  scope: TaskScope,
  workspace_id: v.optional(v.string()),
  status: TaskStatus,
  priority: v.optional(TaskPriority),
  owner: v.nullish(Owner),
  paused: v.optional(v.boolean()),
  effective_paused: v.optional(v.boolean()),
  /** The paused ancestor, or the task itself when it was paused directly. */
  paused_by_task_id: v.optional(v.string()),
  latest_event_seq: Integer,
})
export type TaskSummary = v.InferOutput<typeof TaskSummary>

const common = {
  ...TaskSummary.entries,
  draft: v.optional(v.boolean()),
  parent_task_id: v.optional(v.string()),
  current_run_id: v.optional(v.string()),
  max_attempts: v.optional(Integer),
  auto_enqueue_on_ready: v.optional(v.boolean()),
  approval_policy: v.optional(ApprovalPolicy),
  approval_state: v.optional(ApprovalState),
  created_by: TaskActor,
  origin: TaskOrigin,
  wake_creator: v.boolean(),
  paused_at: maybeTimestamp,
  paused_by: v.optional(v.string()),
  paused_reason: v.optional(v.string()),
  needs_attention: v.optional(v.boolean()),
  needs_attention_at: maybeTimestamp,
  needs_attention_by: v.nullish(TaskActor),
  needs_attention_reason: v.optional(v.string()),
  blocked_reasons: v.optional(v.array(BlockedReason)),
  resolved_network_participation: v.nullish(ResolvedParticipation),
  created_at: Timestamp,
  updated_at: Timestamp,
  closed_at: maybeTimestamp,
}

/** A task. */
export const Task = v.object({
  ...common,
  description: v.optional(v.string()),
  metadata: v.optional(v.unknown()),
})
export type Task = v.InferOutput<typeof Task>

/** A dependency: the task waits until the other one is completed. */
export const DependencyEdge = v.object({
  task_id: v.string(),
  depends_on_task_id: v.string(),
  kind: v.picklist(['blocks']),
  created_at: Timestamp,
})
export type DependencyEdge = v.InferOutput<typeof DependencyEdge>

/** A dependency with the task that it refers to. */
export const Dependency = v.object({ ...DependencyEdge.entries, depends_on: TaskSummary })
export type Dependency = v.InferOutput<typeof Dependency>

/** Members shared by lists and details. */
export const taskOverview = common
