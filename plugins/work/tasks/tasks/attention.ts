import type { Tx } from '../../../../kernel/plugin.js'
import type { TaskCore } from '../core.js'
import { update } from '../rows.js'
import type { Who } from '../who.js'
import type { TaskRow } from './task-row.js'

/** Marks a task as needing attention, unless it is marked already. The caller reconciles its status. */
export function wantAttention(core: TaskCore, t: Tx, who: Who, task: TaskRow, reason: string, run?: string): void {
  if (core.tasks.find(task.id, t).attention_at !== null) return
  update(t, 'tasks_task', task.id, {
    attention_at: core.now(),
    attention_reason: reason,
    attention_by_kind: who.by.kind,
    attention_by_ref: who.by.ref,
  })
  const about = run === undefined ? {} : { run }
  core.journal.write(t, who, 'task.needs_attention', { task, ...about, payload: { reason } })
}
