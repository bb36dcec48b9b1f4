import type { Tx } from '../../../../kernel/plugin.js'
import type { TaskCore } from '../core.js'
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
