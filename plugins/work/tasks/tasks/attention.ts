import type { Tx } from '../../../../kernel/plugin.js'
import type { Settle, TaskCore } from '../core.js'
import type { RunRow } from '../runs/run-row.js'
import { moveRun } from '../transitions.js'
import type { Who } from '../who.js'
import { type TaskRow, taskTable } from './task-row.js'

/** Columns of a task that needs attention. */
export const attention = (core: TaskCore, { by }: Who, reason: string) => ({
  attention_at: core.now(),
  attention_reason: reason,
  attention_by_kind: by.kind,
  attention_by_ref: by.ref,
})

/** Marks a task as needing attention, unless it is marked already. The caller reconciles its status. */
export function wantAttention(core: TaskCore, t: Tx, who: Who, task: TaskRow, reason: string, run?: string): void {
  if (core.tasks.find(task.id, t).attention_at !== null) return
  taskTable.update(t, { id: task.id }, attention(core, who, reason))
  const about = run === undefined ? {} : { run }
  core.journal.write(t, who, 'task.needs_attention', { task, ...about, payload: { reason } })
}

/** Moves the run and its task to needs_attention: an operator has to decide. */
export function escalate(core: TaskCore, t: Tx, who: Who, run: RunRow, error: string, settle: Settle): void {
  const task = core.tasks.find(run.task_id, t)
  moveRun(core, t, run, 'escalate', { error })
  taskTable.update(t, { id: task.id }, attention(core, who, error))
  core.journal.write(t, who, 'task.run_needs_attention', { task, run: run.id, payload: { error } })
  core.journal.write(t, who, 'task.needs_attention', { task, run: run.id, payload: { reason: error } })
  settle(task.id)
}
