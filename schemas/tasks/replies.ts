/** Replies of the routes of tasks, runs and leases. */
import * as v from 'valibot'
import { Integer, maybeTimestamp, Page, Timestamp } from '../kernel/common.js'
import { DiagnosticItem } from '../kernel/diagnostic.js'
import { Dependency, DependencyEdge, Owner, Task, TaskActor, TaskBlock, TaskOrigin, TaskStatus } from './definitions.js'
import { TaskClaim, TaskItem, TaskLease, TaskOverview, TaskRun } from './run.js'

export const TaskReply = v.object({ task: Task })
export type TaskReply = v.InferOutput<typeof TaskReply>

/** A queued run of a task; `existing_run`: the idempotency key was used before and this is the run it created. */
export const ExecutionReply = v.object({ run: TaskRun, task: Task, existing_run: v.optional(v.boolean()) })
export type ExecutionReply = v.InferOutput<typeof ExecutionReply>

export const TaskRunReply = v.object({ run: TaskRun, existing_run: v.optional(v.boolean()) })
export type TaskRunReply = v.InferOutput<typeof TaskRunReply>

/** A retried or recovered run and its successor. */
export const SuccessorReply = v.object({ previous_run: TaskRun, run: TaskRun })
export type SuccessorReply = v.InferOutput<typeof SuccessorReply>

export const TaskRunsReply = v.object({ runs: v.array(TaskRun) })
export type TaskRunsReply = v.InferOutput<typeof TaskRunsReply>

/** Runs with the titles of their tasks. */
export const AllRunsReply = v.object({
  runs: v.array(v.object({ ...TaskRun.entries, task_title: v.string() })),
  page: Page,
})
export type AllRunsReply = v.InferOutput<typeof AllRunsReply>

export const FanOutReply = v.object({ designation_group_id: v.string(), runs: v.array(TaskRun) })
export type FanOutReply = v.InferOutput<typeof FanOutReply>

/** One result per run. */
export const BulkRunsReply = v.object({
  results: v.array(
    v.object({
      run_id: v.string(),
      ok: v.boolean(),
      run: v.nullish(TaskRun),
      error: v.nullish(
        v.object({
          error: v.string(),
          code: v.optional(v.string()),
          diagnostic: v.nullish(DiagnosticItem),
        }),
      ),
    }),
  ),
})
export type BulkRunsReply = v.InferOutput<typeof BulkRunsReply>

/** An event of a task. */
export const TaskEvent = v.object({
  id: v.string(),
  task_id: v.string(),
  run_id: v.optional(v.string()),
  event_type: v.string(),
  actor: TaskActor,
  origin: TaskOrigin,
  payload: v.optional(v.unknown()),
  timestamp: Timestamp,
})
export type TaskEvent = v.InferOutput<typeof TaskEvent>

/** A task with its runs, children, dependencies and events. */
export const TaskDetail = v.object({
  task: Task,
  /** Why the task is not progressing. */
  why: v.optional(v.string()),
  /** The command to run next, or what the task is waiting for. */
  next_action: v.string(),
  summary: TaskOverview,
  children: v.optional(v.array(TaskOverview)),
  dependencies: v.optional(v.array(DependencyEdge)),
  dependency_references: v.optional(v.array(Dependency)),
  designation_rollups: v.optional(
    v.array(
      v.object({
        task_id: v.string(),
        designation_group_id: v.string(),
        created_at: Timestamp,
        summary: v.optional(v.unknown()),
      }),
    ),
  ),
  events: v.optional(v.array(TaskEvent)),
  runs: v.optional(v.array(TaskRun)),
})
export type TaskDetail = v.InferOutput<typeof TaskDetail>

export const TaskDetailReply = v.object({ task: TaskDetail })
export type TaskDetailReply = v.InferOutput<typeof TaskDetailReply>

export const ListTasksReply = v.object({
  tasks: v.array(TaskItem),
  page: Page,
  facets: v.object({
    owners: v.array(v.object({ owner: Owner, count: Integer })),
    statuses: v.array(v.object({ status: TaskStatus, count: Integer })),
  }),
})
export type ListTasksReply = v.InferOutput<typeof ListTasksReply>

export const BlocksReply = v.object({ blocks: v.array(TaskBlock) })
export type BlocksReply = v.InferOutput<typeof BlocksReply>

export const BlockReply = v.object({ block: TaskBlock })
export type BlockReply = v.InferOutput<typeof BlockReply>

export const ClaimReply = v.object({ claim: TaskClaim })
export type ClaimReply = v.InferOutput<typeof ClaimReply>

export const LeaseReply = v.object({ lease: TaskLease })
export type LeaseReply = v.InferOutput<typeof LeaseReply>

/** `next`: the run claimed by the same request, if it asked for one; null: none, with `next_refused` as the reason if known. */
export const CompleteLeaseReply = v.object({
  lease: TaskLease,
  next: v.nullish(TaskClaim),
  next_refused: v.optional(v.object({ code: v.string(), message: v.string() })),
})
export type CompleteLeaseReply = v.InferOutput<typeof CompleteLeaseReply>

/** A started run and the worktree of its session. */
export const AgentRunReply = v.object({
  run: v.object({
    ...TaskRun.entries,
    resolved_worktree_mode: v.picklist(['none', 'ref', 'per_run']),
    resolved_worktree_ref: v.optional(v.string()),
    worktree_id: v.optional(v.string()),
  }),
})
export type AgentRunReply = v.InferOutput<typeof AgentRunReply>

/** The state of the scheduler. */
export const TaskScheduler = v.object({
  as_of: Timestamp,
  paused: v.boolean(),
  paused_at: maybeTimestamp,
  paused_by: v.optional(v.string()),
  paused_reason: v.optional(v.string()),
  active_claim_count: Integer,
  needs_attention_run_count: Integer,
  paused_task_count: Integer,
  queued_run_count: Integer,
  /** Runs that have been claimable for two minutes or longer. */
  starved_run_count: Integer,
})
export type TaskScheduler = v.InferOutput<typeof TaskScheduler>

export const SchedulerReply = v.object({ scheduler: TaskScheduler })
export type SchedulerReply = v.InferOutput<typeof SchedulerReply>

/** Result of a drain; `completed`: no active claim is left. */
export const DrainReply = v.object({
  completed: v.boolean(),
  completed_at: Timestamp,
  remaining_claims: Integer,
  scheduler: TaskScheduler,
  started_at: Timestamp,
  timed_out: v.optional(v.boolean()),
})
export type DrainReply = v.InferOutput<typeof DrainReply>
