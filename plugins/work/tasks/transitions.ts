import { command } from '../../../kernel/kit/commands/command-line.js'
import type { Tx } from '../../../kernel/plugin.js'
import type { TaskStatus } from '../../../schemas/tasks.js'
import { TaskErrors, type TaskEventName } from './api.js'
import type { TaskCore } from './core.js'
import { LIMITS } from './limits.js'
import { cancelReviews } from './reviews/moves.js'
import { type RunRow, runTable, UNCLAIMED } from './runs/run-row.js'
import { allows, FINAL_RUN, RUN_MOVES, type RunMove } from './states.js'
import type { Consequences } from './tasks/reconcile.js'
import type { TaskRow } from './tasks/task-row.js'
import { runKinds } from './totals.js'
import type { Who } from './who.js'

/** A run changes its status. */
interface RunChange {
  /** The row before the change. */
  readonly run: RunRow
  readonly columns: Partial<RunRow> & Pick<RunRow, 'status'>
}

/** A task changes its status. */
export interface TaskChange {
  /** The row before the change. */
  readonly task: TaskRow
  readonly status: TaskStatus
  /** Columns that change with the status. */
  readonly columns?: Partial<TaskRow>
  readonly event: TaskEventName
  readonly payload?: Readonly<Record<string, unknown>>
  /** With the task, its open runs and reviews are canceled, for this reason. A task that has ended keeps its status. */
  readonly cancels?: { readonly reason: string | undefined }
}

/** Facts changed from which the statuses of these tasks and of their dependents are derived. */
interface FactsChange {
  readonly tasks: readonly string[]
  consequences: Consequences | undefined
}

/** An effect of a change of state, in the same transaction. A missing handler: this kind of change has no such effect. */
interface Effect {
  readonly name: string
  readonly run?: (core: TaskCore, t: Tx, change: RunChange) => void
  readonly task?: (core: TaskCore, t: Tx, who: Who, change: TaskChange) => void
  readonly facts?: (core: TaskCore, t: Tx, who: Who, change: FactsChange) => void
}

/** A run that ends, returns to the queue or needs attention loses its lease. A canceled task has no open run. */
const leases: Effect = {
  name: 'leases',
  run: (core, t, { run, columns }) => {
    runTable.update(t, { id: run.id }, columns)
    core.runs.leaseChanged(t, run, { ...run, ...columns })
    if (columns.lease_until) core.deadlines.arm('runs', columns.lease_until + LIMITS.lease.late)
  },
  task: (core, t, who, { task, cancels }) => {
    if (cancels === undefined) return
    for (const run of core.runs.open(task.id, t)) {
      moveRun(core, t, run, 'cancel', { error: cancels.reason ?? 'the task was canceled' })
      core.journal.write(t, who, 'task.run_canceled', { task, run: run.id, payload: { reason: cancels.reason ?? '' } })
    }
  },
}

/** With its lease, a run loses its reservation. */
const budgets: Effect = {
  name: 'budgets',
  run: (core, t, { run, columns }) => {
    if (run.lease_until !== null && columns.lease_until === null) core.budgets.release(t, run)
  },
}

const reviews: Effect = {
  name: 'reviews',
  task: (core, t, who, { task, cancels }) => {
    if (cancels !== undefined) cancelReviews(core, t, who, task.id)
  },
}

/** Stores the status of a task with its event, and derives the statuses that follow from it. */
const status: Effect = {
  name: 'status',
  run: (core, t, { run, columns }) =>
    core.totals.runs.moved(t, runKinds(run.origin_kind, run.place), run.status, columns.status),
  task: (core, t, who, { task, status, columns, event, payload }) => {
    if (status === task.status) return
    core.totals.tasks.moved(t, task.scope, task.status, status)
    core.journal.write(t, who, event, { task, ...(payload && { payload }), changes: { status, ...columns } })
  },
  facts: (core, t, who, change) => {
    change.consequences = core.reconciler.reconcile(t, who, change.tasks)
  },
}

/** Wakes the creator of the task, and once the change is durable waiting claims and the queue of unblocked tasks. */
const wakes: Effect = {
  name: 'wakes',
  task: (core, t, who, { task, status }) => {
    if (status !== task.status) core.wakes.note(t, who, task, status)
  },
  facts: (core, t, _who, { consequences }) => {
    if (consequences !== undefined) core.wakes.follow(t, consequences)
  },
}

/** The effects of every change of state, in their order. */
export const EFFECTS: readonly Effect[] = [leases, budgets, reviews, status, wakes]

/**
 * Applies a transition of {@link RUN_MOVES} to a run. Returns the row after it.
 * @throws Fault `task_run_conflict` when the table does not allow the transition
 */
export function moveRun(core: TaskCore, t: Tx, run: RunRow, move: RunMove, changes: Partial<RunRow> = {}): RunRow {
  const { to } = RUN_MOVES[move]
  if (!allows(move, run.status)) {
    const text = `run ${run.id} is ${run.status}; this operation requires status ${RUN_MOVES[move].from.join(', ')}`
    throw TaskErrors.task_run_conflict(text, { next: command('task run show', run.id) })
  }
  const ended = FINAL_RUN.has(to) ? { ended_at: core.now(), lease_until: null } : {}
  const waits = to === 'queued' ? UNCLAIMED : {}
  const held = to === 'needs_attention' ? { lease_until: null } : {}
  const started = to === 'running' && run.started_at === null ? { started_at: core.now() } : {}
  const columns = { status: to, ...started, ...ended, ...waits, ...held, ...changes }
  for (const effect of EFFECTS) effect.run?.(core, t, { run, columns })
  return { ...run, ...columns }
}

/** Changes the status of a task. The statuses of other tasks that depend on it are left to {@link settle}. */
export function moveTask(core: TaskCore, t: Tx, who: Who, change: TaskChange): void {
  for (const effect of EFFECTS) effect.task?.(core, t, who, change)
}

/** Reconciles the statuses of the given tasks and of the tasks that depend on them. */
export function settle(core: TaskCore, t: Tx, who: Who, tasks: readonly string[]): void {
  const change: FactsChange = { tasks, consequences: undefined }
  for (const effect of EFFECTS) effect.facts?.(core, t, who, change)
}
