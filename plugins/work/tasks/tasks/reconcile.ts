import type { Tx } from '../../../../kernel/plugin.js'
import type { TaskStatus } from '../../../../schemas/tasks.js'
import type { TaskCore } from '../core.js'
import { latestRuns, outcomeOf, PART_FAILED, partFailure } from '../runs/latest.js'
import type { RunRow } from '../runs/run-row.js'
import { deriveStatus, FINAL_TASK, needsParts, type TaskFacts } from '../states.js'
import { moveTask } from '../transitions.js'
import type { Who } from '../who.js'
import { NO_ATTENTION, type TaskRow, taskTable } from './task-row.js'

/** Effects of a change on other tasks and on waiting claims, applied when it is durable. */
export interface Consequences {
  /** Unblocked tasks with auto_enqueue_on_ready. */
  readonly enqueue: string[]
  /** A run has become claimable. */
  claimable: boolean
}

/** Derives the statuses of tasks from their runs, dependencies, approvals, pauses and blocks. */
export class Reconciler {
  constructor(private readonly core: TaskCore) {}

  /** Reconciles these tasks and all tasks whose status depends on theirs. */
  reconcile(t: Tx, who: Who, ids: readonly string[]): Consequences {
    const consequences: Consequences = { enqueue: [], claimable: false }
    const waiting = [...ids]
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      const found = this.core.tasks.getHeld(id, t)
      if (found) waiting.push(...this.#one(t, who, found.task, found.isHeld, consequences))
    }
    return consequences
  }

  /** Returns the tasks whose status may change as a result. */
  #one(t: Tx, who: Who, before: TaskRow, isHeld: boolean, consequences: Consequences): string[] {
    const { facts, latest, queued } = this.#facts(t, before, isHeld)
    const status = deriveStatus(facts)
    const claimable = !facts.blocked && !facts.needsAttention && status !== 'draft' && !FINAL_TASK.has(status)
    const claimableChanged = claimable !== (before.claimable === 1)
    const lastFailed = latest.some(run => run.status === 'failed')
    const attention = this.#attention(who, before, facts, latest)
    const marks = {
      ...attention,
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
    const isSame = status === before.status
    if (isSame) taskTable.update(t, { id: before.id }, marks)
    const moved = isSame ? [] : this.#move(t, who, { ...before, ...attention }, status, marks)
    if (attention?.attention_reason)
      this.core.journal.write(t, who, 'task.needs_attention', {
        task: before,
        payload: { reason: attention.attention_reason },
      })
    return moved
  }

  /** The attention mark of a failed part: set when it is missing, removed when no failed part needs attention any longer. */
  #attention(
    { by }: Who,
    { attention_at: at, attention_reason: reason }: TaskRow,
    facts: TaskFacts,
    latest: readonly RunRow[],
  ): Partial<TaskRow> | undefined {
    if (!needsParts(facts)) return isOfParts(reason) ? NO_ATTENTION : undefined
    if (at !== null) return undefined
    return {
      attention_at: this.core.now(),
      attention_reason: partFailure(latest),
      attention_by_kind: by.kind,
      attention_by_ref: by.ref,
    }
  }

  #move(t: Tx, who: Who, before: TaskRow, status: TaskStatus, marks: Partial<TaskRow> = {}): string[] {
    const now = this.core.now()
    const over = FINAL_TASK.has(status)
    const closed = over ? (before.closed_at ?? now) : null
    // A completed task starts with fresh block counters if it is reopened.
    const recurrences = status === 'completed' ? { recurrences: null } : {}
    moveTask(this.core, t, who, {
      task: before,
      status,
      columns: { closed_at: closed, updated_at: now, ...recurrences, ...marks },
      event: 'task.status_changed',
      payload: { from: before.status, to: status },
    })
    if (status !== 'completed' && before.status !== 'completed') return []
    const dependents = t.rows('SELECT task_id FROM tasks_dependency WHERE depends_on = ?', [before.id])
    const above = status === 'completed' ? this.rollUp(t, who, before.parent_task_id) : []
    return [...dependents.map(([id]) => String(id)), ...above]
  }

  /**
   * Completes a parent once all its children and its own runs are completed, and no part has to be repeated. Called when a child is
   * completed or deleted; returns the tasks whose status may change as a result.
   */
  rollUp(t: Tx, who: Who, parentId: string | null): string[] {
    const parent = parentId === null ? undefined : this.core.tasks.get(parentId, t)
    if (!parent || FINAL_TASK.has(parent.status) || parent.status === 'draft') return []
    const [children, completed] = t.row(
      "SELECT count(*), sum(status = 'completed') FROM tasks_task WHERE parent_task_id = ?",
      [parent.id],
    ) ?? [0]
    const left = children === 0 || children !== completed
    if (left) return []
    const { facts } = this.#facts(t, parent, this.core.tasks.holds(parent, t).length > 0)
    const isOpen = facts.working || facts.waiting || facts.stuck || needsParts(facts)
    return isOpen ? [] : this.#move(t, who, parent, 'completed')
  }

  #facts(
    t: Tx,
    task: TaskRow,
    isHeld: boolean,
  ): { readonly facts: TaskFacts; readonly latest: readonly RunRow[]; readonly queued: boolean } {
    const runs = this.core.runs.all(task.id, t)
    const latest = latestRuns(runs)
    const is = (...states: readonly RunRow['status'][]) => runs.some(({ status }) => states.includes(status))
    const facts = {
      status: task.status,
      working: is('starting', 'running'),
      waiting: is('queued', 'claimed'),
      stuck: is('needs_attention'),
      ...outcomeOf(latest, task.max_attempts),
      needsAttention: task.attention_at !== null && !isOfParts(task.attention_reason),
      blocked: isHeld,
    }
    return { facts, latest, queued: is('queued') }
  }
}

const isOfParts = (reason: string | null) => reason?.startsWith(PART_FAILED) === true
