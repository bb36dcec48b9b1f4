import { command } from '../../../../kernel/kit/commands/command-line.js'
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
import { given } from '../rows.js'
import { actorToWire, refToWire } from '../who.js'

/** A task as it is stored; times in epoch milliseconds, switches 0 or 1. */
export interface TaskRow {
  readonly id: string
  readonly identifier: string | null
  readonly title: string
  readonly description: string | null
  readonly status: TaskStatus
  readonly priority: number
  readonly scope: 'global' | 'workspace'
  readonly workspace_id: string | null
  readonly parent_task_id: string | null
  readonly max_attempts: number
  readonly auto_enqueue: number
  readonly approval_policy: 'none' | 'manual'
  readonly approval_state: 'not_required' | 'pending' | 'approved' | 'rejected'
  readonly owner_kind: Owner['kind'] | null
  readonly owner_ref: string | null
  readonly created_by_kind: TaskActor['kind']
  readonly created_by_ref: string
  readonly origin_kind: TaskOrigin['kind']
  readonly origin_ref: string
  readonly wake_creator: number
  readonly metadata: string | null
  /** The requested network participation. */
  readonly participation: string | null
  readonly paused_at: number | null
  readonly paused_by: string | null
  readonly paused_reason: string | null
  /** The nearest paused ancestor, including the task itself. */
  readonly pausing_task: string | null
  readonly attention_at: number | null
  readonly attention_reason: string | null
  readonly attention_by_kind: TaskActor['kind'] | null
  readonly attention_by_ref: string | null
  /** May its queued runs be claimed? */
  readonly claimable: number
  /** The latest run has failed, or the latest of a part of a fan-out. */
  readonly last_run_failed: number
  /** Count of blocks by kind since the last completion. */
  readonly recurrences: string | null
  readonly created_at: number
  readonly updated_at: number
  readonly closed_at: number | null
  readonly latest_event_seq: number
  readonly event_count: number
  readonly last_activity_at: number
}

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
    ...given('identifier', row.identifier),
    title: row.title,
    scope: row.scope,
    ...given('workspace_id', row.workspace_id),
    status: row.status,
    priority: priorityOf(row.priority),
    owner: ownerOf(row) ?? null,
    paused: row.paused_at !== null,
    effective_paused: row.pausing_task !== null,
    ...given('paused_by_task_id', row.pausing_task),
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
    ...given('parent_task_id', row.parent_task_id),
    ...given('current_run_id', currentRun),
    max_attempts: row.max_attempts,
    auto_enqueue_on_ready: row.auto_enqueue === 1,
    approval_policy: row.approval_policy,
    approval_state: row.approval_state,
    created_by: actorToWire(row.created_by_kind, row.created_by_ref),
    origin: { kind: row.origin_kind, ref: refToWire(row.origin_ref) },
    wake_creator: row.wake_creator === 1,
    paused_at: time(row.paused_at),
    ...given('paused_by', row.paused_by && refToWire(row.paused_by)),
    ...given('paused_reason', row.paused_reason),
    needs_attention: row.attention_at !== null,
    needs_attention_at: time(row.attention_at),
    ...(row.attention_by_kind === null
      ? {}
      : { needs_attention_by: actorToWire(row.attention_by_kind, row.attention_by_ref) }),
    ...given('needs_attention_reason', row.attention_reason),
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
    ...given('description', row.description),
    ...(row.metadata === null ? {} : { metadata: JSON.parse(row.metadata) }),
  }
}

/** The command that shows the state of a task, as the next step of an error. */
export const look = (id: string) => ({ next: command('task get', id) })
