import { command } from '../../../../kernel/kit/commands/command-line.js'
import type { Tx } from '../../../../kernel/plugin.js'
import type { PauseTaskBody, ReasonBody, Task } from '../../../../schemas/tasks.js'
import { TaskErrors, Tasks } from '../api.js'
import type { Settle, TaskCore } from '../core.js'
import { LIMITS } from '../limits.js'
import { FINAL_TASK } from '../states.js'
import { runKinds } from '../totals.js'
import { moveTask } from '../transitions.js'
import type { Who } from '../who.js'
import { showHint, type TaskRow, taskTable } from './task-row.js'
import { bounded, checked, invalid } from './write.js'

/** Cancels, pauses, resumes, rejects and deletes tasks. */
export class TaskControl {
  constructor(private readonly core: TaskCore) {}

  /** Cancels a task, its descendants and their open runs. Descendants that have ended keep their status. */
  cancel(who: Who, id: string, { reason, metadata: more }: ReasonBody): Promise<Task> {
    bounded('metadata', more)
    const why = checked('reason', reason, LIMITS.reason)
    return this.#change(who, id, (t, task, settle) => {
      if (task.status === 'completed')
        throw TaskErrors.task_conflict(`task ${id} is completed and cannot be canceled`, showHint(id))
      const tree = this.core.tasks.subtree(id, t)
      for (const each of tree) {
        const hasEnded = FINAL_TASK.has(each.status) && each.status !== 'failed'
        const now = this.core.now()
        moveTask(this.core, t, who, {
          task: each,
          status: hasEnded ? each.status : 'canceled',
          columns: { claimable: 0, closed_at: now, updated_at: now },
          event: 'task.canceled',
          payload: { reason: why ?? '', from: each.status },
          cancels: { reason: why },
        })
      }
      settle(...tree.map(each => each.id))
    })
  }

  /** Stops new claims for the task and its descendants; active runs continue. */
  pause(who: Who, id: string, { reason, metadata: more }: PauseTaskBody): Promise<Task> {
    bounded('metadata', more)
    const why = checked('reason', reason, LIMITS.reason)
    if (why === undefined) throw invalid('reason: required')
    return this.#change(who, id, (t, task, settle) => {
      if (FINAL_TASK.has(task.status))
        throw TaskErrors.task_conflict(`task ${id} cannot be paused: it is ${task.status}`, showHint(id))
      if (task.paused_at !== null) return
      taskTable.update(t, { id }, { paused_at: this.core.now(), paused_by: who.by.ref, paused_reason: why })
      this.core.journal.write(t, who, 'task.paused', { task, payload: { reason: why } })
      this.#spread(t, id, settle)
    })
  }

  resume(who: Who, id: string): Promise<Task> {
    return this.#change(who, id, (t, task, settle) => {
      if (task.paused_at === null) return
      taskTable.update(t, { id }, { paused_at: null, paused_by: null, paused_reason: null })
      this.core.journal.write(t, who, 'task.resumed', { task })
      this.#spread(t, id, settle)
    })
  }

  reject(who: Who, id: string): Promise<Task> {
    return this.#change(who, id, (t, task, settle) => {
      if (task.approval_policy !== 'manual' || task.approval_state !== 'pending')
        throw TaskErrors.task_conflict(
          `task ${id} is not waiting for approval: its approval state is ${task.approval_state}`,
          showHint(id),
        )
      taskTable.update(t, { id }, { approval_state: 'rejected' })
      this.core.journal.write(t, who, 'task.rejected', { task })
      settle(id)
    })
  }

  /** Deletes a task that has no children and no open run. */
  remove(who: Who, id: string): Promise<void> {
    return this.core.write(who, (t, settle) => {
      const task = this.core.tasks.find(id, t)
      const [child] = this.core.tasks.children(id, t)
      if (child)
        throw TaskErrors.task_conflict(`task ${id} has children, such as ${child.id}; delete them first`, {
          next: command('task tree', id),
        })
      const [run] = this.core.runs.open(id, t)
      if (run)
        throw TaskErrors.task_run_open(`task ${id} has an open run: ${run.id} is ${run.status}`, {
          next: command('task run cancel', run.id),
        })
      this.core.journal.write(t, who, 'task.deleted', { task, payload: { title: task.title } })
      this.core.kernel.needs.ownership.tombstone(t, Tasks, id)
      const rows = t.rows('SELECT task_id FROM tasks_dependency WHERE depends_on = ?', [id])
      const dependents = rows.map(([dependent]) => String(dependent))
      // Without this event, the timelines of dependents would not show why they became ready.
      for (const dependent of dependents) {
        const waiting = this.core.tasks.get(dependent, t)
        if (!waiting) continue
        const payload = { depends_on_task_id: id }
        this.core.journal.write(t, who, 'task.dependency_removed', { task: waiting, payload })
      }
      const { tasks, runs } = this.core.totals
      for (const [status, origin] of t.rows('SELECT status, origin_kind FROM tasks_run WHERE task_id = ?', [id]))
        runs.moved(t, runKinds(String(origin), task.workspace_id ?? ''), String(status), undefined)
      tasks.moved(t, task.scope, task.status, undefined)
      for (const [table, column] of BELONGINGS) t.run(`DELETE FROM ${table} WHERE ${column} = ?`, [id])
      t.run("DELETE FROM tasks_budget WHERE kind = 'task' AND ref = ?", [id])
      this.core.rowsMoved(t)
      settle(...dependents)
      // The remaining children may complete the parent.
      settle(...this.core.reconciler.rollUp(t, who, task.parent_task_id))
    })
  }

  /** Updates the nearest paused ancestor of each task in the tree. */
  #spread(t: Tx, root: string, settle: Settle): void {
    const tree = this.core.tasks.subtree(root, t)
    const above = this.core.tasks.get(tree[0]?.parent_task_id ?? '', t)?.pausing_task ?? null
    const pausing = new Map<string, string | null>()
    for (const each of tree) {
      const by = each.paused_at === null ? (pausing.get(each.parent_task_id ?? '') ?? above) : each.id
      pausing.set(each.id, by)
      if (by !== each.pausing_task) taskTable.update(t, { id: each.id }, { pausing_task: by })
    }
    settle(...pausing.keys())
  }

  #change(who: Who, id: string, work: (t: Tx, task: TaskRow, settle: Settle) => void): Promise<Task> {
    return this.core.write(who, (t, settle) => {
      work(t, this.core.tasks.find(id, t), settle)
      return this.core.tasks.toWire(this.core.tasks.find(id, t), t)
    })
  }
}

/** Rows that are deleted with a task, including dependencies on it. */
const BELONGINGS = [
  ['tasks_dependency', 'task_id'],
  ['tasks_dependency', 'depends_on'],
  ['tasks_block', 'task_id'],
  ['tasks_review', 'task_id'],
  ['tasks_hold', 'task_id'],
  ['tasks_spend', 'task_id'],
  ['tasks_run', 'task_id'],
  ['tasks_event', 'task_id'],
  ['tasks_triage', 'task_id'],
  ['tasks_profile', 'task_id'],
  ['tasks_kept', 'task_id'],
  ['tasks_worker', 'task_id'],
  ['tasks_wake', 'task_id'],
  ['tasks_task', 'id'],
] as const
