/** `svc/plugins/tasks`: work that agents claim, hold under a lease and finish. */
import * as v from 'valibot'
import { type Actor, defineErrors, event, type Hook, token } from '../../kernel/plugin.js'
import type { CreateTaskBody, ExecutionProfileBody, Task, TaskRun } from '../../schemas/tasks.js'
import type { SessionInfo } from '../sessions/api.js'

/** What a session says of itself and of the work it wants, before it is given any. With `deny`, in words, it gets none. */
export interface ClaimWish {
  readonly deny?: string
  readonly capabilities: readonly string[]
  /** urgent 40, high 30, medium 20, low 10; 0 for any. */
  readonly priorityMin: number
  /** Cannot be changed. */
  readonly runId: string | undefined
}

/** What is known of a task that a plugin creates. */
export interface SubmitOptions {
  /** What led to it, `run:<id>` say; default: who creates it. */
  readonly origin?: string
  /** Key of its first run. */
  readonly key?: string
  readonly profile?: ExecutionProfileBody
}

export interface TasksApi {
  /** `task.run.pre_claim`: a claim may be refused, its capabilities grow and its least priority rise. */
  readonly preClaim: Hook<
    (wish: ClaimWish, session: SessionInfo) => ClaimWish | undefined | Promise<ClaimWish | undefined>
  >
  /**
   * Creates a task and, unless it is a draft or waits for its approval, queues its first run. The same again, with an id and
   * a key, is what was made before.
   */
  submit(
    actor: Actor,
    body: CreateTaskBody,
    more?: SubmitOptions,
  ): Promise<{ readonly task: Task; readonly run?: TaskRun }>
  run(id: string): TaskRun | undefined
}

export const Tasks = token<TasksApi>('tasks@1')

const payload = v.looseObject({ task_id: v.string(), run_id: v.optional(v.string()) })

/** Everything that happens to tasks, by name. */
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
/** The daemon has found runs to start, again and again, and started none. */
export const SchedulerStalled = event('scheduler.stalled', v.object({ looks: v.number(), waiting: v.number() }))
export const SchedulerDrainCompleted = event('scheduler.drain_completed', drain)

const tasks = 'svc task list'
export const TaskErrors = defineErrors({
  task_not_found: { status: 404, message: 'no such task', next: tasks },
  task_run_not_found: { status: 404, message: 'no such run of a task', next: 'svc task run all' },
  task_block_not_found: { status: 404, message: 'no such block on this task', next: 'svc task blocks <task-id>' },
  task_invalid: { status: 422, message: 'the task is not valid', next: 'svc task create --help' },
  task_too_large: { status: 413, message: 'this is larger than a task may hold', next: 'svc task update --help' },
  task_exists: { status: 409, message: 'another task has this id', next: tasks },
  task_conflict: { status: 409, message: 'the state of the task does not allow this', next: 'svc task get <task-id>' },
  task_run_conflict: {
    status: 409,
    message: 'the state of the run does not allow this',
    next: 'svc task run show <id>',
  },
  task_run_open: { status: 409, message: 'the task has a run that is not over', next: 'svc task run list <task-id>' },
  task_attempts_exhausted: {
    status: 409,
    message: 'no attempt is left',
    next: 'svc task retry <run-id>',
  },
  task_approval_pending: {
    status: 409,
    message: 'the task waits for its approval',
    next: 'svc task approve <task-id>',
  },
  task_key_conflict: {
    status: 422,
    message: 'this idempotency_key belongs to a run of another task',
    next: 'send the request with another key',
  },
  task_cycle: { status: 409, message: 'the tasks would wait for each other', next: 'svc task get <task-id>' },
  task_graph_limit: {
    status: 409,
    message: 'a limit of the graph of tasks is reached',
    next: 'svc task get <task-id>',
  },
  task_run_leased: {
    status: 409,
    message: 'a session holds this run under a lease; it alone completes and fails it',
    next: 'svc task release <run-id>',
  },
  task_reason_required: { status: 422, message: 'say why, by reason', next: 'svc task run fail --help' },
  task_chain_too_long: {
    status: 422,
    message: 'this run goes back to too many others; find out why they fail',
    next: 'svc task run list <task-id>',
  },
  task_force_limit: { status: 429, message: 'too many forced changes of this task; wait a minute' },
  task_force_refused: {
    status: 403,
    message: 'agents do not force anything here: task.recovery.allow_agent_force is off',
    next: 'svc config get task.recovery.allow_agent_force',
  },
  task_result_required: {
    status: 422,
    message: 'the profile of this task wants a result that says what was done',
    next: 'svc task complete --help',
  },
  task_workspace_foreign: { status: 403, message: 'an agent has the tasks of its own workspace only' },
  task_claim_denied: { status: 403, message: 'a hook refused the claim', next: 'svc hooks list' },
  task_worktree_unsupported: { status: 422, message: 'this place to work in is not there' },
  tasks_stopping: { status: 503, message: 'the daemon is stopping', next: 'svc status' },
  AUTONOMY_SESSION_REQUIRED: {
    status: 409,
    message: 'only a session that is active claims and holds runs',
    next: 'svc session list',
  },
  AUTONOMY_LEASE_ALREADY_HELD: {
    status: 409,
    message: 'this session holds another run; complete, fail or release it first',
    next: 'svc task release <run-id>',
  },
  AUTONOMY_LEASE_EXPIRED: {
    status: 409,
    message: 'the lease has expired; what was done since does not count',
    next: 'svc task next',
  },
  AUTONOMY_FOREIGN_RUN: { status: 409, message: 'another session holds this run', next: 'svc task next' },
  AUTONOMY_NO_ACTIVE_LEASE: { status: 409, message: 'nobody holds this run', next: 'svc task next' },
  AUTONOMY_LEASE_INVALID: {
    status: 422,
    message: 'lease_seconds is from 0, the default, to 86400',
    next: 'svc task next --help',
  },
  AUTONOMY_WORKSPACE_FULL: {
    status: 409,
    message: 'so many runs are held in this workspace as may be; wait for one to end',
    next: 'svc scheduler status',
  },
  AUTONOMY_CREATED_TASKS_UNKNOWN: {
    status: 409,
    message: 'created_task_ids names tasks that this session did not create in this workspace; the run goes on',
    next: 'complete it with the ids that svc task create gave',
  },
})
