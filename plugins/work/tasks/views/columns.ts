import type { CliColumn } from '../../../../kernel/kit/annotations/index.js'

/** Arguments of the commands for tasks and runs. */
export const TASK_ARG = { name: 'id', in: 'path', summary: 'task ID, ID prefix, identifier or @last' } as const
export const RUN_ARG = { name: 'id', in: 'path', summary: 'run ID, ID prefix or @last' } as const
/** The same in the routes for agents. */
export const AGENT_RUN_ARG = { ...RUN_ARG, name: 'run_id' } as const

/** How the command line shows tasks and runs. */
export const taskFields: readonly CliColumn[] = [
  { header: 'Task', path: 'id' },
  { header: 'Identifier', path: 'identifier' },
  { header: 'Title', path: 'title' },
  { header: 'Status', path: 'status' },
  { header: 'Priority', path: 'priority' },
  { header: 'Description', path: 'description' },
  { header: 'Scope', path: 'scope' },
  { header: 'Workspace', path: 'workspace_id' },
  { header: 'Parent', path: 'parent_task_id' },
  { header: 'Owner', path: 'owner.ref' },
  { header: 'Approval', path: 'approval_state' },
  { header: 'Pause reason', path: 'paused_reason' },
  { header: 'Attention reason', path: 'needs_attention_reason' },
  { header: 'Run', path: 'current_run_id' },
  { header: 'Created', path: 'created_at', as: 'time' },
]
export const taskItem = { item: 'task', fields: taskFields } as const

export const runFields: readonly CliColumn[] = [
  { header: 'Run', path: 'id' },
  { header: 'Task', path: 'task_id' },
  { header: 'Status', path: 'status' },
  { header: 'Attempt', path: 'attempt' },
  { header: 'Recoveries', path: 'recovery_count' },
  { header: 'Previous run', path: 'previous_run_id' },
  { header: 'Session', path: 'session_id' },
  { header: 'Kind', path: 'kind' },
  { header: 'Part', path: 'designation.brief' },
  { header: 'Queued', path: 'queued_at', as: 'time' },
  { header: 'Claimed', path: 'claimed_at', as: 'time' },
  { header: 'Ended', path: 'ended_at', as: 'time' },
  { header: 'Lease expires', path: 'lease_until', as: 'time' },
  { header: 'Error', path: 'error' },
  { header: 'Result', path: 'result' },
]
export const runItem = { item: 'run', fields: runFields } as const

export const runRows = {
  rows: 'runs',
  columns: [
    { header: 'ID', path: 'id' },
    { header: 'STATUS', path: 'status' },
    { header: 'ATTEMPT', path: 'attempt' },
    { header: 'QUEUED', path: 'queued_at', as: 'ago' },
    { header: 'ENDED', path: 'ended_at', as: 'ago' },
    { header: 'SESSION', path: 'session_id', below: true },
    { header: 'KIND', path: 'kind', below: true },
    { header: 'PART', path: 'designation.brief', below: true },
    { header: 'ERROR', path: 'error', below: true },
  ],
  empty: 'no runs. Queue one: svc task start <id>',
} as const

/** Columns of `svc task run all`. */
export const allRunRows = {
  rows: 'runs',
  columns: [
    { header: 'ID', path: 'id' },
    { header: 'STATUS', path: 'status' },
    { header: 'TASK', path: 'task_title' },
    { header: 'QUEUED', path: 'queued_at', as: 'ago' },
    { header: 'ENDED', path: 'ended_at', as: 'ago' },
    { header: 'PART', path: 'designation.brief', below: true },
    { header: 'ERROR', path: 'error', below: true },
  ],
  empty: 'no runs. Queue one: svc task start <id>',
} as const

/** A completed run, and the one that was claimed with it. */
export const completedItem = {
  item: '',
  fields: [
    { header: 'Run', path: 'lease.run_id' },
    { header: 'Task', path: 'lease.task_id' },
    { header: 'Status', path: 'lease.status' },
    { header: 'Next run', path: 'next.run.id' },
    { header: 'Next task', path: 'next.task.title' },
    { header: 'Lease expires', path: 'next.lease.lease_until', as: 'time' },
    { header: 'No next run', path: 'next_refused.message' },
  ],
} as const

export const leaseItem = {
  item: 'lease',
  fields: [
    { header: 'Run', path: 'run_id' },
    { header: 'Task', path: 'task_id' },
    { header: 'Status', path: 'status' },
    { header: 'Lease expires', path: 'lease_until', as: 'time' },
  ],
} as const
