import type { CliColumn } from '../../../kernel/plugin.js'

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
  { header: 'Paused because', path: 'paused_reason' },
  { header: 'Needs attention', path: 'needs_attention_reason' },
  { header: 'Run', path: 'current_run_id' },
  { header: 'Created', path: 'created_at', as: 'time' },
]
export const taskItem = { item: 'task', fields: taskFields } as const

export const runFields: readonly CliColumn[] = [
  { header: 'Run', path: 'id' },
  { header: 'Task', path: 'task_id' },
  { header: 'Status', path: 'status' },
  { header: 'Attempt', path: 'attempt' },
  { header: 'Recovered', path: 'recovery_count' },
  { header: 'Goes on with', path: 'previous_run_id' },
  { header: 'Session', path: 'session_id' },
  { header: 'Part', path: 'designation.brief' },
  { header: 'Queued', path: 'queued_at', as: 'time' },
  { header: 'Claimed', path: 'claimed_at', as: 'time' },
  { header: 'Ended', path: 'ended_at', as: 'time' },
  { header: 'Lease until', path: 'lease_until', as: 'time' },
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
    { header: 'PART', path: 'designation.brief', below: true },
    { header: 'ERROR', path: 'error', below: true },
  ],
  empty: 'no runs; queue one: svc task start <id>',
} as const

/** The runs of all tasks. */
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
  empty: 'no runs; queue one: svc task start <id>',
} as const

export const leaseItem = {
  item: 'lease',
  fields: [
    { header: 'Run', path: 'run_id' },
    { header: 'Task', path: 'task_id' },
    { header: 'Status', path: 'status' },
    { header: 'Lease until', path: 'lease_until', as: 'time' },
  ],
} as const
