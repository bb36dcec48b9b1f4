/** `svc/plugins/tasks`: durable tasks. An agent claims a run of a task under a lease, renews the lease and completes the run. */

import * as v from 'valibot'
import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import {
  type Actor,
  defineErrors,
  event,
  hookTable,
  notify,
  pipeline,
  type TapsOf,
  token,
} from '../../../kernel/plugin.js'
import type { CreateTaskBody, ExecutionProfileBody, Task, TaskOrigin, TaskRun } from '../../../schemas/tasks.js'
import type { SessionInfo } from '../sessions/api.js'
import type { TaskAttention } from './views/overview.js'

export type { TaskAttention, WaitingTask } from './views/overview.js'

/** A claim as the hook `task.run.pre_claim` sees it. A hook that sets `deny` refuses the claim with that message. */
export interface ClaimWish {
  readonly deny?: string
  readonly capabilities: readonly string[]
  /** Lowest acceptable priority: urgent 40, high 30, medium 20, low 10; 0 for any. */
  readonly priorityMin: number
  /** The requested run; a hook cannot change it. */
  readonly runId: string | undefined
}

/** A coordinator in the input of hook programs. */
export interface CoordinatorNote {
  readonly taskId: string
  readonly runId: string
  /** Undefined for a global task. */
  readonly workspaceId: string | undefined
  readonly agentName: string
  /** Absent before its session is created. */
  readonly sessionId?: string
}

/** The session of a coordinator before it is created. A hook that sets `deny` refuses it with that message. */
export interface CoordinatorWish extends CoordinatorNote {
  readonly deny?: string
  /** Required provider of its agent; undefined: any. */
  readonly provider: string | undefined
  /** Undefined: the model of the agent. */
  readonly model: string | undefined
}

/** Options for a task that a plugin creates. */
export interface SubmitOptions {
  /** Reference recorded as the origin, such as `run:<id>`, or the whole of it; default: that of the actor. */
  readonly origin?: string | TaskOrigin
  /** Whether the first run is queued; default: yes. */
  readonly isQueued?: boolean
  /** Idempotency key of the first run. */
  readonly key?: string
  readonly profile?: ExecutionProfileBody
}

/** The hooks of tasks. */
export const points = hookTable({
  preClaim: pipeline<ClaimWish, [session: SessionInfo]>(
    'task.run.pre_claim',
    'Before a session claims a task run. A tap may refuse the claim, add capabilities or raise the minimum priority.',
    { deadlineMs: 600_000 },
  ),
  coordinatorPreSpawn: pipeline<CoordinatorWish>(
    'coordinator.pre_spawn',
    'Before the session of a coordinator is created. A tap may refuse it, or choose its agent, provider or model.',
    { deadlineMs: 600_000 },
  ),
  coordinatorSpawned: notify<[CoordinatorNote]>(
    'coordinator.spawned',
    'After the session of a coordinator was created.',
  ),
  coordinatorDecision: notify<[CoordinatorNote, runIds: readonly string[]]>(
    'coordinator.decision',
    'After a coordinator divided its task: with the runs that it queued.',
  ),
  coordinatorStopped: notify<[CoordinatorNote]>(
    'coordinator.stopped',
    'After the session of a coordinator was stopped, its run having ended.',
  ),
  coordinatorFailed: notify<[CoordinatorNote, error: string]>(
    'coordinator.failed',
    'After the session of a coordinator failed, or could not be created.',
  ),
})

/** A worker outside of this daemon that holds a run. */
export interface KeptHolder {
  /** Name shown as the claimant of the run. */
  readonly name: string
  /** Fence of one claim. A claim with the same key is the same claim; another attempt needs another key. */
  readonly key: string
}

/** Runs that a plugin gives to workers outside of this daemon, under the leases that sessions have. */
export interface KeptRunsApi {
  /**
   * Queues a run of a task, or takes the one that is queued, and keeps it from sessions until {@link free}.
   * @throws Fault `task_not_found`, `task_conflict`, `task_run_open`, `task_attempts_exhausted`
   */
  keep(
    actor: Actor,
    taskId: string,
    keeper: string,
  ): Promise<{ readonly run: TaskRun; readonly title: string; readonly description: string }>
  /** Claims and starts a kept run. @throws Fault `task_conflict`, `task_run_conflict` when it cannot be claimed */
  claim(runId: string, holder: KeptHolder, leaseMs: number): Promise<TaskRun>
  /** Renews the lease, counted from now. @throws Fault `AUTONOMY_LEASE_EXPIRED` */
  extend(runId: string, holder: KeptHolder, leaseMs: number): Promise<TaskRun>
  /** Completes the run; has no effect on one that this claim has ended. @throws Fault `AUTONOMY_LEASE_EXPIRED` */
  complete(runId: string, holder: KeptHolder, result: unknown): Promise<TaskRun>
  /** Fails the run; has no effect on one that this claim has ended. @throws Fault `AUTONOMY_LEASE_EXPIRED` */
  fail(runId: string, holder: KeptHolder, error: string): Promise<TaskRun>
  /** Gives a kept task back to sessions of this daemon, and ends the lease of a holder. */
  free(actor: Actor, taskId: string, reason: string): Promise<void>
  /** Returns a run, after revoking its lease if that has expired. */
  look(runId: string): Promise<TaskRun | undefined>
}

export interface TasksApi extends TapsOf<typeof points> {
  readonly kept: KeptRunsApi
  /**
   * Creates a task and queues its first run, unless the task is a draft or awaits approval. A second call with the same
   * task id and key returns the existing task and run.
   */
  submit(
    actor: Actor,
    body: CreateTaskBody,
    more?: SubmitOptions,
  ): Promise<{ readonly task: Task; readonly run?: TaskRun }>
  /** Cancels a task and its open runs; has no effect on one that has ended. */
  cancel(actor: Actor, taskId: string, reason: string): Promise<void>
  run(id: string): TaskRun | undefined
  /** Whether a run coordinates others, and the number of worker runs of its fan-out. */
  crewOf(runId: string): { readonly isCoordinator: boolean; readonly workers: number }
  /** Undefined: there is no such task. */
  titleOf(id: string): string | undefined
  /** Undefined: the task does not exist, or has no workspace. */
  workspaceOf(id: string): string | undefined
  /** The session whose agent created a task; undefined for other creators. */
  creatorSession(id: string): string | undefined
  /** The tasks that wait for a caller, of one workspace or all, for overviews. */
  attention(actor: Actor, of: { readonly workspaceId?: string | undefined; readonly limit: number }): TaskAttention
  /** Time of the last activity of tasks, and whether runs of them are active now. */
  activity(workspaceId?: string): { readonly at: number | undefined; readonly isLive: boolean }
}

export const Tasks = token<TasksApi>('tasks@1')

const payload = v.looseObject({ task_id: v.string(), run_id: v.optional(v.string()) })

/** The names of all task events. */
const NAMES = [
  'task.created',
  'task.updated',
  'task.published',
  'task.approved',
  'task.rejected',
  'task.canceled',
  'task.deleted',
  'task.child_created',
  'task.dependency_added',
  'task.dependency_removed',
  'task.paused',
  'task.resumed',
  'task.block.created',
  'task.block.cleared',
  'task.block.expired',
  'task.status_changed',
  'task.needs_attention',
  'task.recovered',
  'task.auto_enqueue.triggered',
  'task.completion.hallucination_blocked',
  'task.completion.hallucination_suspected',
  'task.wake.delivered',
  'task.wake.suppressed',
  'task.run_enqueued',
  'task.run_claimed',
  'task.run_starting',
  'task.run_session_bound',
  'task.run_started',
  'task.run_completed',
  'task.run_failed',
  'task.run_canceled',
  'task.run_recovered',
  'task.run_lease_extended',
  'task.run_lease_expired',
  'task.run_released',
  'task.run_operator_forced_fail',
  'task.run_operator_retry',
  'task.run_recovered_from_attention',
  'task.run_needs_attention',
  'task.run_starved',
  'task.execution_profile_updated',
  'task.execution_profile_deleted',
  'task.budget_exceeded',
  'task.run_review_requested',
  'task.run_review_routed',
  'task.run_review_started',
  'task.run_review_recorded',
  'task.run_review_circuit_opened',
  'task.run_review_canceled',
] as const
export type TaskEventName = (typeof NAMES)[number]

export const TaskEvents = Object.fromEntries(NAMES.map(name => [name, event(name, payload)])) as Readonly<
  Record<TaskEventName, ReturnType<typeof event<v.InferOutput<typeof payload>>>>
>

export const SchedulerPaused = event('scheduler.paused', v.object({ reason: v.optional(v.string()) }))
export const SchedulerResumed = event('scheduler.resumed', v.object({ reason: v.optional(v.string()) }))
const drain = v.object({ remaining_claims: v.number() })
export const SchedulerDrainStarted = event('scheduler.drain_started', drain)
/** Several scheduler passes in a row found runs to start and started none. */
export const SchedulerStalled = event('scheduler.stalled', v.object({ looks: v.number(), waiting: v.number() }))
export const SchedulerDrainCompleted = event('scheduler.drain_completed', drain)

const tasks = command('task list')
export const TaskErrors = defineErrors({
  task_not_found: { status: 404, message: 'task not found', next: tasks },
  task_archived: {
    status: 409,
    message: 'the task is in the archive, where it can be read only',
    next: command('task restore', placeholder('task-id')),
  },
  task_archive_off: {
    status: 503,
    message: 'the task is in the archive, and the plugin archives does not run',
    next: command('plugin show', 'archives'),
  },
  task_run_not_found: { status: 404, message: 'task run not found', next: command('task run all') },
  task_block_not_found: {
    status: 404,
    message: 'block not found on this task',
    next: command('task blocks', placeholder('task-id')),
  },
  task_invalid: { status: 422, message: 'invalid task', next: command('task create', '--help') },
  task_too_large: { status: 413, message: 'the task exceeds a size limit', next: command('task update', '--help') },
  task_exists: { status: 409, message: 'a task with this ID already exists', next: tasks },
  task_conflict: {
    status: 409,
    message: 'the task status does not allow this operation',
    next: command('task get', placeholder('task-id')),
  },
  task_run_conflict: {
    status: 409,
    message: 'the run status does not allow this operation',
    next: command('task run show', placeholder('id')),
  },
  task_run_open: {
    status: 409,
    message: 'the task already has an open run',
    next: command('task run list', placeholder('task-id')),
  },
  task_attempts_exhausted: {
    status: 409,
    message: 'all attempts of the task are used',
    next: command('task retry', placeholder('run-id')),
  },
  task_approval_pending: {
    status: 409,
    message: 'the task is waiting for approval',
    next: command('task approve', placeholder('task-id')),
  },
  task_key_conflict: {
    status: 422,
    message: 'the idempotency_key belongs to a run of another task',
    next: 'send the request with another idempotency_key',
  },
  task_cycle: {
    status: 409,
    message: 'the dependency would create a cycle',
    next: command('task get', placeholder('task-id')),
  },
  task_graph_limit: {
    status: 409,
    message: 'a task graph limit is reached',
    next: command('task get', placeholder('task-id')),
  },
  task_run_leased: {
    status: 409,
    message: 'the run is leased; only the session that holds the lease can start, complete or fail it',
    next: command('task run show', placeholder('run-id')),
  },
  task_reason_required: { status: 422, message: 'a reason is required', next: command('task run fail', '--help') },
  task_chain_too_long: {
    status: 422,
    message: 'the run was retried or recovered too many times; find out why it fails',
    next: command('task run list', placeholder('task-id')),
  },
  task_force_limit: { status: 429, message: 'too many forced operations on this task; wait a minute' },
  task_force_refused: {
    status: 403,
    message: 'agents may not force operations: task.recovery.allow_agent_force is false',
    next: command('config get', 'task.recovery.allow_agent_force'),
  },
  task_fan_out_refused: {
    status: 403,
    message: 'an agent can only fan out the task whose coordinator run it holds',
    next: command('task child create', placeholder('task-id'), placeholder('title')),
  },
  task_result_required: {
    status: 422,
    message: 'the execution profile of the task requires a result',
    next: command('task complete', '--help'),
  },
  task_claim_denied: { status: 403, message: 'a hook denied the claim', next: command('hooks list') },
  task_worktree_unsupported: { status: 422, message: 'the worktree is not available' },
  tasks_stopping: { status: 503, message: 'the daemon is stopping', next: command('status') },
  AUTONOMY_SESSION_REQUIRED: {
    status: 409,
    message: 'only an active session can claim and hold runs',
    next: command('session list'),
  },
  AUTONOMY_LEASE_ALREADY_HELD: {
    status: 409,
    message: 'the session already holds a lease; complete, fail or release that run first',
    next: command('task release', placeholder('run-id')),
  },
  AUTONOMY_LEASE_EXPIRED: {
    status: 409,
    message: 'the lease has expired; updates from its former holder are rejected',
    next: command('task next'),
  },
  AUTONOMY_FOREIGN_RUN: { status: 409, message: 'another session holds the run', next: command('task next') },
  AUTONOMY_NO_ACTIVE_LEASE: { status: 409, message: 'the run has no active lease', next: command('task next') },
  AUTONOMY_LEASE_INVALID: {
    status: 422,
    message: 'lease_seconds must be between 0 (default) and 86400',
    next: command('task next', '--help'),
  },
  AUTONOMY_WORKSPACE_FULL: {
    status: 409,
    message: 'the workspace has reached its limit of active runs; wait for one to end',
    next: command('scheduler status'),
  },
  AUTONOMY_CREATED_TASKS_UNKNOWN: {
    status: 409,
    message: 'created_task_ids contains tasks that this session did not create in this workspace; the run stays open',
    next: 'complete the run with the IDs that svc task create returned',
  },
})
