import { command } from '../../../../kernel/kit/commands/command-line.js'
import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
import { iso } from '../../../../kernel/plugin.js'
import type {
  BlockedReason,
  Owner,
  Task,
  TaskActor,
  TaskOrigin,
  TaskStatus,
  TaskSummary,
} from '../../../../schemas/tasks.js'
import { priorityOf } from '../limits.js'
import { optionalMember } from '../rows.js'
import { actorToWire, refToWire } from '../who.js'

const { integer, text, time } = column

/** A task as it is stored; times in epoch milliseconds, switches 0 or 1. */
export const taskTable = table('tasks_task', {
  id: text(),
  identifier: text().nullable(),
  title: text(),
  description: text().nullable(),
  status: text<TaskStatus>(),
  priority: integer(),
  scope: text<'global' | 'workspace'>(),
  workspace_id: text().nullable(),
  parent_task_id: text().nullable(),
  max_attempts: integer(),
  auto_enqueue: integer(),
  approval_policy: text<'none' | 'manual'>(),
  approval_state: text<'not_required' | 'pending' | 'approved' | 'rejected'>(),
  owner_kind: text<Owner['kind']>().nullable(),
  owner_ref: text().nullable(),
  created_by_kind: text<TaskActor['kind']>(),
  created_by_ref: text(),
  origin_kind: text<TaskOrigin['kind']>(),
  origin_ref: text(),
  wake_creator: integer(),
  metadata: text().nullable(),
  /** The requested network participation. */
  participation: text().nullable(),
  paused_at: time().nullable(),
  paused_by: text().nullable(),
  paused_reason: text().nullable(),
  /** The nearest paused ancestor, including the task itself. */
  pausing_task: text().nullable(),
  attention_at: time().nullable(),
  attention_reason: text().nullable(),
  attention_by_kind: text<TaskActor['kind']>().nullable(),
  attention_by_ref: text().nullable(),
  /** Whether its queued runs may be claimed. */
  claimable: integer(),
  /** The latest run, or the latest run of a part of a fan-out, has failed. */
  last_run_failed: integer(),
  /** Count of blocks by kind since the last completion. */
  recurrences: text().nullable(),
  created_at: time(),
  updated_at: time(),
  closed_at: time().nullable(),
  latest_event_seq: integer(),
  event_count: integer(),
  last_activity_at: time(),
})
export type TaskRow = RowOf<typeof taskTable>

/** Columns of a task that needs no attention. */
export const NO_ATTENTION = {
  attention_at: null,
  attention_reason: null,
  attention_by_kind: null,
  attention_by_ref: null,
} as const

/** Data from other tables. */
export interface TaskMore {
  readonly currentRun: string | undefined
  readonly blockedReasons: readonly BlockedReason[]
}

export const ownerOf = ({ owner_kind: kind, owner_ref: ref }: TaskRow): Owner | undefined =>
  kind === null ? undefined : { kind, ref: ref ?? '' }

export function summaryToWire(row: TaskRow): TaskSummary {
  return {
    id: row.id,
    ...optionalMember('identifier', row.identifier),
    title: row.title,
    scope: row.scope,
    ...optionalMember('workspace_id', row.workspace_id),
    status: row.status,
    priority: priorityOf(row.priority),
    owner: ownerOf(row) ?? null,
    paused: row.paused_at !== null,
    effective_paused: row.pausing_task !== null,
    ...optionalMember('paused_by_task_id', row.pausing_task),
    latest_event_seq: row.latest_event_seq,
  }
}

/** Members shared by a task and its overview. */
export function taskFacts(
  row: TaskRow,
  { currentRun, blockedReasons }: TaskMore,
): Omit<Task, 'description' | 'metadata'> {
  const time = (at: number | null) => (at === null ? null : iso(at))
  return {
    ...summaryToWire(row),
    draft: row.status === 'draft',
    ...optionalMember('parent_task_id', row.parent_task_id),
    ...optionalMember('current_run_id', currentRun),
    max_attempts: row.max_attempts,
    auto_enqueue_on_ready: row.auto_enqueue === 1,
    approval_policy: row.approval_policy,
    approval_state: row.approval_state,
    created_by: actorToWire(row.created_by_kind, row.created_by_ref),
    origin: { kind: row.origin_kind, ref: refToWire(row.origin_ref) },
    wake_creator: row.wake_creator === 1,
    paused_at: time(row.paused_at),
    ...optionalMember('paused_by', row.paused_by && refToWire(row.paused_by)),
    ...optionalMember('paused_reason', row.paused_reason),
    needs_attention: row.attention_at !== null,
    needs_attention_at: time(row.attention_at),
    ...(row.attention_by_kind === null
      ? {}
      : { needs_attention_by: actorToWire(row.attention_by_kind, row.attention_by_ref) }),
    ...optionalMember('needs_attention_reason', row.attention_reason),
    blocked_reasons: [...blockedReasons],
    created_at: iso(row.created_at),
    updated_at: iso(row.updated_at),
    closed_at: time(row.closed_at),
  }
}

/** A task as the contract has it. */
export function taskToWire(row: TaskRow, more: TaskMore): Task {
  return {
    ...taskFacts(row, more),
    ...optionalMember('description', row.description),
    ...(row.metadata === null ? {} : { metadata: JSON.parse(row.metadata) }),
  }
}

/** The command that shows the state of a task, as the next step of an error. */
export const showHint = (id: string) => ({ next: command('task get', id) })
