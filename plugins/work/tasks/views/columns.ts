import { type Column, columnsOf, type Member, show } from '../../../../kernel/kit/annotations/index.js'
import { AllRunsReply, CompleteLeaseReply, LeaseReply, type Task, type TaskRun } from '../../../../schemas/tasks.js'

/** Arguments of the commands for tasks and runs. */
export const TASK_ARG = { name: 'id', in: 'path', summary: 'task ID, ID prefix, identifier or @last' } as const
export const RUN_ARG = { name: 'id', in: 'path', summary: 'run ID, ID prefix or @last' } as const
/** The run argument in the routes for agents. */
export const AGENT_RUN_ARG = { ...RUN_ARG, name: 'run_id' } as const

/** Columns of a task, shared by many replies. */
export const TASK_FIELDS: readonly Column<Member<Task>>[] = [
  'id',
  'identifier',
  'title',
  'status',
  'priority',
  'description',
  'scope',
  'workspace_id',
  'parent_task_id',
  { of: 'owner.ref', header: 'Owner' },
  'approval_state',
  { of: 'paused_reason', header: 'Pause reason' },
  { of: 'needs_attention_reason', header: 'Attention reason' },
  'current_run_id',
  'created_at~time',
]
export const taskFields = columnsOf<Task>()(TASK_FIELDS)
export const taskItem = { item: 'task', fields: taskFields } as const

export const runFields = columnsOf<TaskRun>()([
  'id',
  'task_id',
  'status',
  'attempt',
  { of: 'recovery_count', header: 'Recoveries' },
  'previous_run_id',
  'session_id',
  'kind',
  { of: 'designation.brief', header: 'Part' },
  'queued_at~time',
  'claimed_at~time',
  'ended_at~time',
  { of: 'lease_until~time', header: 'Lease expires' },
  'error',
  'result',
])
export const runItem = { item: 'run', fields: runFields } as const

export const runColumns = columnsOf<TaskRun>()([
  'id',
  'status',
  'attempt',
  'queued_at~ago',
  'ended_at~ago',
  { of: 'session_id', header: 'Session', below: true },
  { of: 'kind', below: true },
  { of: 'designation.brief', header: 'Part', below: true },
  { of: 'error', below: true },
])
const empty = 'no runs. Queue one: svc task start <id>'
export const runRows = { rows: 'runs', columns: runColumns, empty } as const

/** Columns of `svc task run all`. */
export const allRunRows = show(
  AllRunsReply,
  'runs',
  [
    'id',
    'status',
    { of: 'task_title', header: 'Task' },
    'queued_at~ago',
    'ended_at~ago',
    { of: 'designation.brief', header: 'Part', below: true },
    { of: 'error', below: true },
  ],
  { empty },
)

/** A completed run, and the run that was claimed with it. */
export const completedItem = show(CompleteLeaseReply, '', [
  'lease.run_id',
  'lease.task_id',
  'lease.status',
  { of: 'next.run.id', header: 'Next run' },
  { of: 'next.task.title', header: 'Next task' },
  { of: 'next.lease.lease_until~time', header: 'Lease expires' },
  { of: 'next_refused.message', header: 'No next run' },
])

export const leaseItem = show(LeaseReply, 'lease', [
  'run_id',
  'task_id',
  'status',
  { of: 'lease_until~time', header: 'Lease expires' },
])
