import type { Tx } from '../../../kernel/plugin.js'
import type { TaskStatus } from '../../../schemas/tasks.js'
import type { TaskJournal } from '../journal.js'
import { update } from '../rows.js'
import { deriveStatus, FINAL_RUN, FINAL_TASK, type TaskFacts } from '../states.js'
import type { Totals } from '../totals.js'
import type { Who } from '../who.js'
import type { TaskRow } from './task-row.js'
import type { TaskStore } from './task-store.js'

/** Effects of a change on other tasks and on waiting claims, applied when it is durable. */
export interface Consequences {
  /** Unblocked tasks with auto_enqueue_on_ready. */
  readonly enqueue: string[]
  /** A run has become claimable. */
  claimable: boolean
}

type RunState = [status: TaskFacts['ended'] | 'queued' | 'claimed' | 'starting' | 'running', attempt: number]

/** Derives the statuses of tasks from their runs, dependencies, approvals, pauses and blocks. */
export class Reconciler {
  constructor(
    private readonly tasks: TaskStore,
    private readonly journal: TaskJournal,
    private readonly totals: Totals,
    private readonly now: () => number,
    private readonly changed: (t: Tx, who: Who, task: TaskRow, status: TaskStatus) => void,
  ) {}

  /** Reconciles these tasks and all tasks whose status depends on theirs. */
  reconcile(t: Tx, who: Who, ids: readonly string[]): Consequences {
    const consequences: Consequences = { enqueue: [], claimable: false }
    const waiting = [...ids]
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      const before = this.tasks.get(id, t)
      if (!before) continue
      waiting.push(...this.#one(t, who, before, consequences))
    }
    return consequences
  }

  /** Returns the tasks whose status may change as a result. */
  #one(t: Tx, who: Who, before: TaskRow, consequences: Consequences): string[] {
    const blocked = this.tasks.blockedBy(before, t).length > 0
    const { facts, lastFailed, queued } = this.#facts(t, before, blocked)
    const status = deriveStatus(facts)
    const claimable = !blocked && before.attention_at === null && status !== 'draft' && !FINAL_TASK.has(status)
    const claimableChanged = claimable !== (before.claimable === 1)
    const marks = {
      ...(lastFailed === (before.last_run_failed === 1) ? {} : { last_run_failed: Number(lastFailed) }),
      ...(claimableChanged ? { claimable: Number(claimable) } : {}),
    }
    // The plus keeps SQLite from using the index of all queued runs; one task has only a few.
    if (claimableChanged && queued)
      t.run("UPDATE tasks_run SET claimable = ? WHERE task_id = ? AND +status = 'queued'", [
        Number(claimable),
        before.id,
      ])
    if (claimable && facts.waiting) consequences.claimable = true
    const unblocked = (before.status === 'blocked' || before.status === 'needs_attention') && status === 'ready'
    if (unblocked && before.auto_enqueue === 1 && !facts.waiting && !facts.working) consequences.enqueue.push(before.id)
    if (status !== before.status) return this.#move(t, who, before, status, marks)
    update(t, 'tasks_task', before.id, marks)
    return []
  }

  #move(t: Tx, who: Who, before: TaskRow, status: TaskStatus, marks: Partial<TaskRow> = {}): string[] {
    const now = this.now()
    const over = FINAL_TASK.has(status)
    const closed = over ? (before.closed_at ?? now) : null
    // A completed task starts with fresh block counters if it is reopened.
    const recurrences = status === 'completed' ? { recurrences: null } : {}
    const changes = { status, closed_at: closed, updated_at: now, ...recurrences, ...marks }
    this.totals.moved(t, before.scope, before.status, status)
    const payload = { from: before.status, to: status }
    this.journal.write(t, who, 'task.status_changed', { task: before, payload, changes })
    this.changed(t, who, before, status)
    if (status !== 'completed' && before.status !== 'completed') return []
    const dependents = t.rows('SELECT task_id FROM tasks_dependency WHERE depends_on = ?', [before.id])
    const above = status === 'completed' ? this.rollUp(t, who, before.parent_task_id) : []
    return [...dependents.map(([id]) => String(id)), ...above]
  }

  /**
   * Completes a parent once all its children are completed and it has no open run of its own. Called when a child is completed or
   * deleted; returns the tasks whose status may change with it.
   */
  rollUp(t: Tx, who: Who, parentId: string | null): string[] {
    const parent = parentId === null ? undefined : this.tasks.get(parentId, t)
    if (!parent || FINAL_TASK.has(parent.status) || parent.status === 'draft') return []
    const [children, completed] = t.row(
      "SELECT count(*), sum(status = 'completed') FROM tasks_task WHERE parent_task_id = ?",
      [parent.id],
    ) ?? [0]
    const left = children === 0 || children !== completed
    const open = t.row(
      "SELECT 1 FROM tasks_run WHERE task_id = ? AND status NOT IN ('completed', 'failed', 'canceled') LIMIT 1",
      [parent.id],
    )
    return left || open ? [] : this.#move(t, who, parent, 'completed')
  }

  #facts(
    t: Tx,
    task: TaskRow,
    blocked: boolean,
  ): { readonly facts: TaskFacts; readonly lastFailed: boolean; readonly queued: boolean } {
    const runs = t.rows(
      'SELECT status, attempt FROM tasks_run WHERE task_id = ? ORDER BY attempt DESC, queued_at DESC, id DESC',
      [task.id],
    ) as unknown as RunState[]
    const is = (...states: readonly string[]) => runs.some(([status]) => states.includes(status ?? ''))
    const ended = runs.find(([status]) => FINAL_RUN.has(status as never))
    const highest = runs[0]?.[1] ?? 0
    const facts = {
      status: task.status,
      working: is('starting', 'running'),
      waiting: is('queued', 'claimed'),
      ended: ended?.[0] as TaskFacts['ended'],
      stuck: is('needs_attention'),
      exhausted: highest + 1 > task.max_attempts,
      needsAttention: task.attention_at !== null,
      blocked,
    }
    return { facts, lastFailed: runs[0]?.[0] === 'failed', queued: is('queued') }
  }
}
