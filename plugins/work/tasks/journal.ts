import type { PluginKernel, Tx } from '../../../kernel/plugin.js'
import type { TaskEvent } from '../../../schemas/tasks.js'
import type { Events } from '../../platform/events/api.js'
import { type TaskEventName, TaskEvents } from './api.js'
import { LIMITS } from './limits.js'
import { insert, json, update } from './rows.js'
import type { TaskRow } from './tasks/task-row.js'
import type { Who } from './who.js'

/** A stored event of a task; `seq` is its position in the event log of the daemon. */
export interface EventRow {
  readonly seq: number
  readonly event_id: string
  readonly task_id: string
  readonly run_id: string | null
  readonly name: string
  readonly at: number
  readonly actor_kind: TaskEvent['actor']['kind']
  readonly actor_ref: string
  readonly origin_kind: TaskEvent['origin']['kind']
  readonly origin_ref: string
  readonly payload: string | null
}

/** The contents of an event. */
export interface Told {
  readonly task: { readonly id: string; readonly workspace_id: string | null; readonly event_count?: number }
  readonly run?: string
  readonly payload?: Readonly<Record<string, unknown>>
  /** Columns of the task that change in the same statement. */
  readonly changes?: Partial<TaskRow>
}

/** A heartbeat does not count as activity: it neither marks a task as unread nor reorders lists. */
const QUIET: TaskEventName = 'task.run_lease_extended'

/** Writes task events to the event log, and keeps the newest events of each task. */
export class TaskJournal {
  constructor(private readonly kernel: Pick<PluginKernel<{ events: typeof Events }>, 'clock' | 'needs'>) {}

  /** Returns the position in the log. */
  write(t: Tx, who: Who, name: TaskEventName, { task, run, payload, changes }: Told): number {
    const now = this.kernel.clock.now()
    const options = { actor: who.actor, subject: task.id, scope: task.workspace_id ?? undefined }
    const told = { ...payload, task_id: task.id, ...(run === undefined ? {} : { run_id: run }) }
    const { id, seq } = this.kernel.needs.events.emit(t, TaskEvents[name], told, options)
    const row: EventRow = {
      seq,
      event_id: id,
      task_id: task.id,
      run_id: run ?? null,
      name,
      at: now,
      actor_kind: who.by.kind,
      actor_ref: who.by.ref,
      origin_kind: who.origin.kind,
      origin_ref: who.origin.ref,
      payload: json(payload),
    }
    insert(t, 'tasks_event', row)
    // The count before the change is accurate enough, and reading it is cheaper than RETURNING.
    const count = task.event_count ?? Number(t.row('SELECT event_count FROM tasks_task WHERE id = ?', [task.id])?.[0])
    const marks = { ...changes, latest_event_seq: seq, ...(name === QUIET ? {} : { last_activity_at: now }) }
    update(t, 'tasks_task', task.id, marks, 'event_count = event_count + 1')
    if (count >= LIMITS.events.kept + LIMITS.events.slack) this.#prune(t, task.id)
    return seq
  }

  #prune(t: Tx, task: string): void {
    const oldest = t.row('SELECT seq FROM tasks_event WHERE task_id = ? ORDER BY seq DESC LIMIT 1 OFFSET +?', [
      task,
      LIMITS.events.kept - 1,
    ])
    t.run('DELETE FROM tasks_event WHERE task_id = ? AND seq < ?', [task, oldest?.[0] ?? 0])
    t.run('UPDATE tasks_task SET event_count = ? WHERE id = ?', [LIMITS.events.kept, task])
  }
}
