/** Request bodies and queries of tasks, runs and leases. */
import * as v from 'valibot'
import { Integer, queryBoolean, queryInteger, Timestamp } from '../kernel/common.js'
import { ParticipationRequest } from '../network.js'
import { ApprovalPolicy, ApprovalState, BlockKind, Owner, TaskPriority, TaskStatus } from './definitions.js'
import { TaskRunStatus } from './run.js'

/** A schema with the description that help, API documents and tools show. */
const described = <S extends v.GenericSchema>(schema: S, text: string) => v.pipe(schema, v.description(text))
const text = (summary: string) => described(v.string(), summary)
const title = text('title of the task')
const description = text('what the task is about; agents read it with the run')
const priority = described(TaskPriority, 'claim priority; default medium')
const owner = described(Owner, 'owner as JSON; only the owner can claim: {"kind":"agent_session","ref":"<session-id>"}')
const maxAttempts = described(Integer, 'maximum number of attempts, 1 to 10; default 3')
const approvalPolicy = described(ApprovalPolicy, 'manual: no run is claimed before the task is approved; default none')
const autoEnqueue = v.pipe(v.boolean(), v.description('queue a run when the task becomes unblocked'))
const participation = v.nullish(
  described(ParticipationRequest, 'requested network participation as JSON: {"mode":"live","channel_strategy":"run"}'),
)
const key = text('idempotency key; the same request with the same key takes effect once')
const metadata = v.optional(v.pipe(v.unknown(), v.description('metadata as JSON, at most 16 KiB')))
const reason = text('reason, shown in the timeline')
const channel = text('show only entries that requested this network channel')
const cursor = text('cursor of the next page, from a previous reply')
const runStatus = described(TaskRunStatus, 'show only runs with this status')
const limit = (most: number, byDefault: number) =>
  described(queryInteger(1, most), `maximum number of results; default ${byDefault}, at most ${most}`)

/** POST /api/tasks, and a child of a task. */
export const CreateTaskBody = v.strictObject({
  id: v.optional(text('ID of the new task; default: generated')),
  identifier: v.optional(text('short name of your own, such as WEB-12')),
  title,
  description: v.optional(description),
  scope: described(v.picklist(['global', 'workspace']), 'scope of the task; svc defaults to the current workspace'),
  workspace: v.optional(text('workspace ID, name or path, for scope workspace')),
  priority: v.optional(priority),
  draft: v.optional(described(v.boolean(), 'create a draft, which has no runs until it is published')),
  owner: v.nullish(owner),
  max_attempts: v.nullish(maxAttempts),
  approval_policy: v.optional(approvalPolicy),
  auto_enqueue_on_ready: v.optional(autoEnqueue),
  metadata,
  network_participation: participation,
  wake_creator: v.nullish(
    described(v.boolean(), 'notify the creating session when the task ends, is blocked or needs attention'),
  ),
})
export type CreateTaskBody = v.InferOutput<typeof CreateTaskBody>

/** PATCH /api/tasks/{id}: omitted or null members keep their values. */
export const UpdateTaskBody = v.strictObject({
  title: v.nullish(title),
  description: v.nullish(description),
  priority: v.nullish(priority),
  owner: v.nullish(owner),
  clear_owner: v.optional(described(v.boolean(), 'remove the owner')),
  max_attempts: v.nullish(maxAttempts),
  approval_policy: v.nullish(approvalPolicy),
  auto_enqueue_on_ready: v.nullish(autoEnqueue),
  metadata,
  network_participation: participation,
})
export type UpdateTaskBody = v.InferOutput<typeof UpdateTaskBody>

/** GET /api/tasks. */
export const ListTasksQuery = v.object({
  scope: v.optional(
    described(v.picklist(['all', 'global', 'workspace']), 'show only tasks of this scope; default all'),
  ),
  workspace: v.optional(text('show only tasks of this workspace: ID, name or path')),
  status: v.optional(described(TaskStatus, 'show only tasks with this status')),
  priority: v.optional(described(TaskPriority, 'show only tasks with this priority')),
  include_drafts: v.optional(described(queryBoolean(), 'include drafts')),
  approval_state: v.optional(described(ApprovalState, 'show only tasks in this approval state')),
  owner_kind: v.optional(described(Owner.entries.kind, 'show only tasks with an owner of this kind')),
  owner_ref: v.optional(text('show only tasks of this owner, such as a session ID')),
  parent_task_id: v.optional(text('show only children of this task')),
  participation_channel: v.optional(channel),
  query: v.optional(text('search text, matched against title and identifier')),
  sort: v.optional(described(v.picklist(['recent', 'priority']), 'order: last activity (default) or priority')),
  cursor: v.optional(cursor),
  limit: v.optional(limit(200, 50)),
})
export type ListTasksQuery = v.InferOutput<typeof ListTasksQuery>

/** Publish, start, approve and enqueue. */
export const ExecutionBody = v.strictObject({
  idempotency_key: v.optional(key),
  metadata,
  network_participation: participation,
})
export type ExecutionBody = v.InferOutput<typeof ExecutionBody>

/** POST /api/tasks/{id}/runs/fan-out. */
export const FanOutBody = v.strictObject({
  designations: v.pipe(
    v.array(v.strictObject({ brief: v.string(), idempotency_key: v.optional(key), metadata })),
    v.description('one entry per run, as JSON: [{"brief":"what this run does"}, …]'),
  ),
  idempotency_key: v.optional(text('idempotency key; run n gets <key>.<n> unless it has its own key')),
  network_participation: participation,
})
export type FanOutBody = v.InferOutput<typeof FanOutBody>

/** POST /api/tasks/{id}/dependencies. */
export const AddDependencyBody = v.strictObject({
  depends_on_task_id: text('ID of the task to wait for'),
  kind: v.optional(described(v.picklist(['blocks']), 'kind of dependency; only blocks')),
})
export type AddDependencyBody = v.InferOutput<typeof AddDependencyBody>

/** POST /api/tasks/{id}/blocks. */
export const CreateBlockBody = v.strictObject({
  kind: described(
    BlockKind,
    'needs_input: an answer; capability: an agent that can do it; transient: until expires_at',
  ),
  reason: text('reason, shown wherever the task is blocked'),
  details: v.optional(described(v.unknown(), 'details as JSON, at most 16 KiB')),
  expires_at: v.nullish(described(Timestamp, 'time at which the block expires; required for kind transient')),
  run_id: v.optional(text('run that was blocked')),
})
export type CreateBlockBody = v.InferOutput<typeof CreateBlockBody>

/** GET /api/tasks/{id}/blocks. */
export const ListBlocksQuery = v.object({
  include_cleared: v.optional(described(queryBoolean(), 'include cleared and expired blocks')),
})
export type ListBlocksQuery = v.InferOutput<typeof ListBlocksQuery>

export const ClearBlockBody = v.strictObject({ note: v.optional(text('note, kept with the block')) })
export type ClearBlockBody = v.InferOutput<typeof ClearBlockBody>

export const PauseTaskBody = v.strictObject({ reason, metadata })
export type PauseTaskBody = v.InferOutput<typeof PauseTaskBody>

export const MetadataBody = v.strictObject({ metadata })
export type MetadataBody = v.InferOutput<typeof MetadataBody>

/** An optional reason for an operation on a task or a run. */
export const ReasonBody = v.strictObject({ reason: v.optional(reason), metadata })
export type ReasonBody = v.InferOutput<typeof ReasonBody>

export const RecoverTaskBody = v.strictObject({ note: v.optional(text('note, shown in the timeline')) })
export type RecoverTaskBody = v.InferOutput<typeof RecoverTaskBody>

/** GET /api/tasks/{id}/runs. */
export const ListTaskRunsQuery = v.object({
  status: v.optional(runStatus),
  session_id: v.optional(text('show only runs of this session')),
  participation_channel: v.optional(channel),
  limit: v.optional(limit(1000, 100)),
})
export type ListTaskRunsQuery = v.InferOutput<typeof ListTaskRunsQuery>

/** GET /api/task-runs: the runs of all tasks. */
export const ListAllRunsQuery = v.object({
  status: v.optional(runStatus),
  cursor: v.optional(cursor),
  limit: v.optional(limit(1000, 50)),
})
export type ListAllRunsQuery = v.InferOutput<typeof ListAllRunsQuery>

/** POST /api/runs/{id}/fail. */
export const ForceFailBody = v.strictObject({ reason, metadata })
export type ForceFailBody = v.InferOutput<typeof ForceFailBody>

export const BulkRunsBody = v.strictObject({
  run_ids: described(v.array(v.string()), 'run IDs, at most 100'),
  reason: v.optional(reason),
  metadata,
})
export type BulkRunsBody = v.InferOutput<typeof BulkRunsBody>

export const AttachSessionBody = v.strictObject({ session_id: text('ID of an active session') })
export type AttachSessionBody = v.InferOutput<typeof AttachSessionBody>

export const StartRunBody = v.strictObject({ idempotency_key: v.optional(key) })
export type StartRunBody = v.InferOutput<typeof StartRunBody>

/** POST .../complete. */
export const FailRunBody = v.strictObject({ error: text('why the run failed'), metadata })
export type FailRunBody = v.InferOutput<typeof FailRunBody>

export const CompleteRunBody = v.strictObject({
  result: v.optional(v.pipe(v.unknown(), v.description('result as JSON, at most 64 KiB'))),
  created_task_ids: v.optional(described(v.array(v.string()), 'IDs of tasks that this session created for the run')),
})
export type CompleteRunBody = v.InferOutput<typeof CompleteRunBody>

/** POST /api/agent/tasks/claim-next; without members, the first claimable run. */
export const ClaimNextBody = v.strictObject({
  run_id: v.optional(text('claim this run only')),
  scope: v.optional(
    described(
      v.picklist(['global', 'workspace']),
      'claim global tasks or tasks in the workspace of the session; default global, or workspace with workspace_id',
    ),
  ),
  workspace_id: v.optional(text('ID of the workspace of the session')),
  required_capabilities: v.optional(described(v.array(v.string()), 'capabilities of the calling session')),
  priority_min: v.optional(described(Integer, 'minimum priority: urgent 40, high 30, medium 20, low 10')),
  lease_seconds: v.optional(described(Integer, 'lease duration in seconds, at most 86400; default 300')),
  wait: v.optional(described(v.boolean(), 'wait until a run can be claimed')),
  idempotency_key: v.optional(key),
  start: v.optional(described(v.boolean(), 'mark the run as running with its claim')),
})
export type ClaimNextBody = v.InferOutput<typeof ClaimNextBody>

/** POST /api/agent/tasks/{run_id}/complete. */
export const CompleteLeaseBody = v.strictObject({
  ...CompleteRunBody.entries,
  next: v.optional(
    v.pipe(
      ClaimNextBody,
      v.description('claim the next run in the same request, as claim-next takes it: {} for the first'),
    ),
  ),
})
export type CompleteLeaseBody = v.InferOutput<typeof CompleteLeaseBody>

export const HeartbeatBody = v.strictObject({
  lease_seconds: v.optional(
    described(Integer, 'new lease duration in seconds; default: the duration of the claim; 0: 300'),
  ),
})
export type HeartbeatBody = v.InferOutput<typeof HeartbeatBody>

export const ReleaseBody = v.strictObject({ reason: v.optional(reason) })
export type ReleaseBody = v.InferOutput<typeof ReleaseBody>

const schedulerReason = text('reason, shown in svc scheduler status')
export const SchedulerBody = v.strictObject({ reason: v.optional(schedulerReason) })
export type SchedulerBody = v.InferOutput<typeof SchedulerBody>

export const DrainBody = v.strictObject({
  reason: v.optional(schedulerReason),
  timeout_seconds: v.nullish(described(Integer, 'how long to wait for active runs; default 60, at most 3600')),
})
export type DrainBody = v.InferOutput<typeof DrainBody>
