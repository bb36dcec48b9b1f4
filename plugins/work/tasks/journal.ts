import { column, type RowOf, table } from '../../../kernel/kit/table.js'
import { sqlName } from '../../../kernel/kit/text.js'
import type { PluginKernel, Tx } from '../../../kernel/plugin.js'
import type { TaskEvent } from '../../../schemas/tasks.js'
import type { Events } from '../../platform/events/api.js'
import { type TaskEventName, TaskEvents } from './api.js'
import { LIMITS } from './limits.js'
import { json } from './rows.js'
import type { TaskRow } from './tasks/task-row.js'
import type { Who } from './who.js'

const { integer, text, time } = column

/** A stored event of a task; `seq` is its position in the event log of the daemon. */
export const eventTable = table('tasks_event', {
  seq: integer(),
  event_id: text(),
  task_id: text(),
  run_id: text().nullable(),
  name: text(),
  at: time(),
  actor_kind: text<TaskEvent['actor']['kind']>(),
  actor_ref: text(),
  origin_kind: text<TaskEvent['origin']['kind']>(),
  origin_ref: text(),
  payload: text().nullable(),
})
export type EventRow = RowOf<typeof eventTable>

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
  /** Readers that wait for the next event of a task. */
  readonly #waiting = new Map<string, Set<() => void>>()

  constructor(private readonly kernel: Pick<PluginKernel<{ events: typeof Events }>, 'clock' | 'db' | 'needs'>) {}

  /** Returns the position in the log. */
  write(t: Tx, who: Who, name: TaskEventName, { task, run, payload, changes }: Told): number {
    const now = this.kernel.clock.now()
    const options = { actor: who.actor, subject: task.id, scope: task.workspace_id ?? undefined }
    const eventPayload = { ...payload, task_id: task.id, ...(run === undefined ? {} : { run_id: run }) }
    const { id, seq } = this.kernel.needs.events.emit(t, TaskEvents[name], eventPayload, options)
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
    eventTable.insert(t, row)
    // The count before the change is accurate enough, and reading it is cheaper than RETURNING.
    const count = task.event_count ?? Number(t.row('SELECT event_count FROM tasks_task WHERE id = ?', [task.id])?.[0])
    const marks = { ...changes, latest_event_seq: seq, ...(name === QUIET ? {} : { last_activity_at: now }) }
    mark(t, task.id, marks)
    this.kernel.db.onDurable(t, () => this.wake(task.id))
    if (count >= LIMITS.events.kept + LIMITS.events.slack) this.#prune(t, task.id)
    return seq
  }

  /** Wakes the readers of a task: it has a new event, was deleted, or moved to the archive or back. */
  wake(task: string): void {
    for (const tell of [...(this.#waiting.get(task) ?? [])]) tell()
  }

  /** Resolves when the readers of a task are woken, or when the signal aborts. */
  changed(task: string, signal: AbortSignal): Promise<void> {
    return new Promise(resolve => {
      const waiting = this.#waiting.get(task) ?? new Set()
      const end = () => {
        waiting.delete(end)
        if (waiting.size === 0) this.#waiting.delete(task)
        signal.removeEventListener('abort', end)
        resolve()
      }
      this.#waiting.set(task, waiting.add(end))
      signal.addEventListener('abort', end, { once: true })
      if (signal.aborted) end()
    })
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

/** Statements by the columns that change: the same few are used repeatedly. */
const statements = new Map<string, string>()

/** Changes columns of a task that has one event more. */
function mark(t: Tx, id: string, changes: Partial<TaskRow>): void {
  const names = Object.keys(changes)
  const key = names.join()
  const assigned = () => names.map(name => `${sqlName(name)} = ?, `).join('')
  const sql = statements.get(key) ?? `UPDATE tasks_task SET ${assigned()}event_count = event_count + 1 WHERE id = ?`
  statements.set(key, sql)
  t.run(sql, [...Object.values(changes), id])
}
