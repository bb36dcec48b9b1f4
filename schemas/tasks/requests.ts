/** What callers ask of tasks, runs and leases. */
import * as v from 'valibot'
import { Integer, queryBoolean, queryInteger, Timestamp } from '../kernel/common.js'
import { ParticipationRequest } from '../network.js'
import { ApprovalPolicy, ApprovalState, BlockKind, Owner, TaskPriority, TaskStatus } from './definitions.js'
import { TaskRunStatus } from './run.js'

const ownerKind = Owner.entries.kind
const key = v.pipe(v.string(), v.description('the same request with the same key happens once'))
const anyJson = v.optional(v.pipe(v.unknown(), v.description('JSON, at most 16 KiB')))

/** POST /api/tasks, and a child of a task. */
export const CreateTaskBody = v.strictObject({
  id: v.optional(v.string()),
  identifier: v.optional(v.pipe(v.string(), v.description('a short name of your own, such as WEB-12'))),
  title: v.string(),
  description: v.optional(v.string()),
  scope: v.picklist(['global', 'workspace']),
  workspace: v.optional(v.pipe(v.string(), v.description('id, name or path; for scope workspace'))),
  priority: v.optional(TaskPriority),
  draft: v.optional(v.pipe(v.boolean(), v.description('nothing is done until it is published'))),
  owner: v.nullish(Owner),
  max_attempts: v.nullish(Integer),
  approval_policy: v.optional(ApprovalPolicy),
  auto_enqueue_on_ready: v.optional(
    v.pipe(v.boolean(), v.description('queue a run as soon as nothing blocks the task any more')),
  ),
  metadata: anyJson,
  network_participation: v.nullish(ParticipationRequest),
  wake_creator: v.nullish(v.boolean()),
})
export type CreateTaskBody = v.InferOutput<typeof CreateTaskBody>

/** PATCH /api/tasks/{id}: the members that change; null and absent ones stay. */
export const UpdateTaskBody = v.strictObject({
  title: v.nullish(v.string()),
  description: v.nullish(v.string()),
  priority: v.nullish(TaskPriority),
  owner: v.nullish(Owner),
  clear_owner: v.optional(v.boolean()),
  max_attempts: v.nullish(Integer),
  approval_policy: v.nullish(ApprovalPolicy),
  auto_enqueue_on_ready: v.nullish(v.boolean()),
  metadata: anyJson,
  network_participation: v.nullish(ParticipationRequest),
})
export type UpdateTaskBody = v.InferOutput<typeof UpdateTaskBody>

/** GET /api/tasks; `query` is looked for in title and identifier. */
export const ListTasksQuery = v.object({
  scope: v.optional(v.picklist(['all', 'global', 'workspace'])),
  workspace: v.optional(v.string()),
  status: v.optional(TaskStatus),
  priority: v.optional(TaskPriority),
  include_drafts: v.optional(queryBoolean()),
  approval_state: v.optional(ApprovalState),
  owner_kind: v.optional(ownerKind),
  owner_ref: v.optional(v.string()),
  parent_task_id: v.optional(v.string()),
  participation_channel: v.optional(v.string()),
  query: v.optional(v.string()),
  sort: v.optional(v.picklist(['recent', 'priority'])),
  cursor: v.optional(v.string()),
  limit: v.optional(queryInteger(1, 200)),
})
export type ListTasksQuery = v.InferOutput<typeof ListTasksQuery>

/** Publish, start, approve and enqueue. */
export const ExecutionBody = v.strictObject({
  idempotency_key: v.optional(key),
  metadata: anyJson,
  network_participation: v.nullish(ParticipationRequest),
})
export type ExecutionBody = v.InferOutput<typeof ExecutionBody>

/** POST /api/tasks/{id}/runs/fan-out. */
export const FanOutBody = v.strictObject({
  designations: v.pipe(
    v.array(v.strictObject({ brief: v.string(), idempotency_key: v.optional(key), metadata: anyJson })),
    v.description('[{"brief":"what this run does"}, …]'),
  ),
  idempotency_key: v.optional(key),
  network_participation: v.nullish(ParticipationRequest),
})
export type FanOutBody = v.InferOutput<typeof FanOutBody>

/** POST /api/tasks/{id}/dependencies. */
export const AddDependencyBody = v.strictObject({
  depends_on_task_id: v.string(),
  kind: v.optional(v.picklist(['blocks'])),
})
export type AddDependencyBody = v.InferOutput<typeof AddDependencyBody>

/** POST /api/tasks/{id}/blocks. */
export const CreateBlockBody = v.strictObject({
  kind: BlockKind,
  reason: v.string(),
  details: anyJson,
  expires_at: v.nullish(Timestamp),
  run_id: v.optional(v.string()),
})
export type CreateBlockBody = v.InferOutput<typeof CreateBlockBody>

/** GET /api/tasks/{id}/blocks. */
export const ListBlocksQuery = v.object({ include_cleared: v.optional(queryBoolean()) })
export type ListBlocksQuery = v.InferOutput<typeof ListBlocksQuery>

export const ClearBlockBody = v.strictObject({ note: v.optional(v.string()) })
export type ClearBlockBody = v.InferOutput<typeof ClearBlockBody>

export const PauseTaskBody = v.strictObject({ reason: v.string(), metadata: anyJson })
export type PauseTaskBody = v.InferOutput<typeof PauseTaskBody>

export const MetadataBody = v.strictObject({ metadata: anyJson })
export type MetadataBody = v.InferOutput<typeof MetadataBody>

/** Why something is undone, and what else is known of it. */
export const ReasonBody = v.strictObject({ reason: v.optional(v.string()), metadata: anyJson })
export type ReasonBody = v.InferOutput<typeof ReasonBody>

export const RecoverTaskBody = v.strictObject({ note: v.optional(v.string()) })
export type RecoverTaskBody = v.InferOutput<typeof RecoverTaskBody>

/** GET /api/tasks/{id}/runs. */
export const ListTaskRunsQuery = v.object({
  status: v.optional(TaskRunStatus),
  session_id: v.optional(v.string()),
  participation_channel: v.optional(v.string()),
  limit: v.optional(queryInteger(1, 1000)),
})
export type ListTaskRunsQuery = v.InferOutput<typeof ListTaskRunsQuery>

/** GET /api/task-runs: of all tasks. */
export const ListAllRunsQuery = v.object({
  status: v.optional(TaskRunStatus),
  cursor: v.optional(v.string()),
  limit: v.optional(queryInteger(1, 1000)),
})
export type ListAllRunsQuery = v.InferOutput<typeof ListAllRunsQuery>

/** POST /api/runs/{id}/fail: the operator's word that a run will not be done. */
export const ForceFailBody = v.strictObject({ reason: v.string(), metadata: anyJson })
export type ForceFailBody = v.InferOutput<typeof ForceFailBody>

export const BulkRunsBody = v.strictObject({
  run_ids: v.array(v.string()),
  reason: v.optional(v.string()),
  metadata: anyJson,
})
export type BulkRunsBody = v.InferOutput<typeof BulkRunsBody>

export const AttachSessionBody = v.strictObject({ session_id: v.string() })
export type AttachSessionBody = v.InferOutput<typeof AttachSessionBody>

export const StartRunBody = v.strictObject({ idempotency_key: v.optional(key) })
export type StartRunBody = v.InferOutput<typeof StartRunBody>

/** POST of a completion; `created_task_ids` are tasks that the same session created for it. */
export const CompleteRunBody = v.strictObject({
  result: v.optional(v.pipe(v.unknown(), v.description('JSON, at most 64 KiB'))),
  created_task_ids: v.optional(v.array(v.string())),
})
export type CompleteRunBody = v.InferOutput<typeof CompleteRunBody>

export const FailRunBody = v.strictObject({ error: v.string(), metadata: anyJson })
export type FailRunBody = v.InferOutput<typeof FailRunBody>

/** POST /api/agent/tasks/claim-next; without members, the first run that the caller may have. */
export const ClaimNextBody = v.strictObject({
  run_id: v.optional(v.string()),
  scope: v.optional(
    v.pipe(
      v.picklist(['global', 'workspace']),
      v.description(
        'tasks of the workspace of the session, or global ones; default: global, unless a workspace is named',
      ),
    ),
  ),
  workspace_id: v.optional(v.pipe(v.string(), v.description('that of the session'))),
  required_capabilities: v.optional(v.pipe(v.array(v.string()), v.description('what the caller is able to do'))),
  priority_min: v.optional(v.pipe(Integer, v.description('urgent 40, high 30, medium 20, low 10'))),
  lease_seconds: v.optional(v.pipe(Integer, v.description('0 for the default of 5 minutes; at most a day'))),
  wait: v.optional(v.pipe(v.boolean(), v.description('wait until there is a run to claim'))),
  idempotency_key: v.optional(key),
})
export type ClaimNextBody = v.InferOutput<typeof ClaimNextBody>

export const HeartbeatBody = v.strictObject({ lease_seconds: v.optional(Integer) })
export type HeartbeatBody = v.InferOutput<typeof HeartbeatBody>

export const ReleaseBody = v.strictObject({ reason: v.optional(v.string()) })
export type ReleaseBody = v.InferOutput<typeof ReleaseBody>

export const SchedulerBody = v.strictObject({ reason: v.optional(v.string()) })
export type SchedulerBody = v.InferOutput<typeof SchedulerBody>

export const DrainBody = v.strictObject({
  reason: v.optional(v.string()),
  timeout_seconds: v.nullish(v.pipe(Integer, v.description('how long to wait for the runs that are held; default 60'))),
})
export type DrainBody = v.InferOutput<typeof DrainBody>
