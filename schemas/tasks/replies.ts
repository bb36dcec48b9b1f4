/** What tasks, runs and leases answer with. */
import * as v from 'valibot'
import { Integer, maybeTimestamp, Page, Timestamp } from '../kernel/common.js'
import { DiagnosticItem } from '../kernel/diagnostic.js'
import { Dependency, DependencyEdge, Owner, Task, TaskActor, TaskBlock, TaskOrigin, TaskStatus } from './definitions.js'
import { TaskClaim, TaskItem, TaskLease, TaskOverview, TaskRun } from './run.js'

export const TaskReply = v.object({ task: Task })
export type TaskReply = v.InferOutput<typeof TaskReply>

/** An execution of a task; `existing_run`: the key was used before, and this is the run of then. */
export const ExecutionReply = v.object({ run: TaskRun, task: Task, existing_run: v.optional(v.boolean()) })
export type ExecutionReply = v.InferOutput<typeof ExecutionReply>

export const TaskRunReply = v.object({ run: TaskRun, existing_run: v.optional(v.boolean()) })
export type TaskRunReply = v.InferOutput<typeof TaskRunReply>

/** A run that goes on with the work of another. */
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

/** Of several runs at once, one result for each. */
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

/** What happened to a task. */
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

/** A task with all that belongs to it. */
export const TaskDetail = v.object({
  task: Task,
  /** Why it does not move on by itself. */
  why: v.optional(v.string()),
  /** The command that helps, or what is waited for. */
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

/** Of the start of a claimed run; where it works. */
export const AgentRunReply = v.object({
  run: v.object({
    ...TaskRun.entries,
    resolved_worktree_mode: v.picklist(['none', 'ref', 'per_run']),
    resolved_worktree_ref: v.optional(v.string()),
    worktree_id: v.optional(v.string()),
  }),
})
export type AgentRunReply = v.InferOutput<typeof AgentRunReply>

/** How the claims of runs stand. */
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
  /** Could have been claimed for two minutes, and nobody did. */
  starved_run_count: Integer,
})
export type TaskScheduler = v.InferOutput<typeof TaskScheduler>

export const SchedulerReply = v.object({ scheduler: TaskScheduler })
export type SchedulerReply = v.InferOutput<typeof SchedulerReply>

/** Of a drain: whether nothing is held any more. */
export const DrainReply = v.object({
  completed: v.boolean(),
  completed_at: Timestamp,
  remaining_claims: Integer,
  scheduler: TaskScheduler,
  started_at: Timestamp,
  timed_out: v.optional(v.boolean()),
})
export type DrainReply = v.InferOutput<typeof DrainReply>
