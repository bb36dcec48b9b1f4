import { column, type RowOf, table } from '../../../kernel/kit/table.js'
import { sqlName } from '../../../kernel/kit/text.js'
import type { PluginKernel, SqlValue, Tx } from '../../../kernel/plugin.js'
import type { TaskEvent } from '../../../schemas/tasks.js'
import type { Emission, Events } from '../../platform/events/api.js'
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

interface Deferred {
  readonly who: Who
  readonly name: TaskEventName
  readonly at: number
  readonly told: Told
}

/** The change of a task by its events in one transaction. */
interface Mark {
  readonly columns: { -readonly [K in keyof TaskRow]?: TaskRow[K] }
  /** Number of events. */
  readonly count: number
  /** Number of events before the transaction. */
  readonly before: number | undefined
}

/** A heartbeat does not count as activity: it neither marks a task as unread nor reorders lists. */
const QUIET: TaskEventName = 'task.run_lease_extended'

/** Writes task events to the event log, and keeps the newest events of each task. */
export class TaskJournal {
  /** Readers that wait for the next event of a task. */
  readonly #waiting = new Map<string, Set<() => void>>()
  /** Events of the running transaction that are not written yet. */
  #deferred: Deferred[] = []
  /** Counts of stored events by task. A transaction that is rolled back leaves its events in the count, which may be a bit off. */
  readonly #counts = new Map<string, number>()

  constructor(private readonly kernel: Pick<PluginKernel<{ events: typeof Events }>, 'clock' | 'db' | 'needs'>) {}

  /** Writes the event, and those that were deferred before it. Returns its position in the log. */
  write(t: Tx, who: Who, name: TaskEventName, told: Told): number {
    this.defer(who, name, told)
    return this.flush(t)
  }

  /**
   * Leaves the event to the next one of the transaction, or to its end: events that are written together need one statement each
   * for the log, for the task and for its events. Until then the row of the task does not show the event.
   */
  defer(who: Who, name: TaskEventName, told: Told): void {
    this.#deferred.push({ who, name, at: this.kernel.clock.now(), told })
  }

  /** Does the work of a transaction, and writes the events that it deferred. */
  collected<T>(t: Tx, work: () => T): T {
    this.#deferred = []
    try {
      const result = work()
      this.flush(t)
      return result
    } finally {
      this.#deferred = []
    }
  }

  /** Writes the deferred events. Returns the position of the last one. */
  flush(t: Tx): number {
    const events = this.#deferred
    if (events.length === 0) return 0
    this.#deferred = []
    const emitted = this.kernel.needs.events.emitAll(t, events.map(emissionOf))
    const values: SqlValue[] = []
    const marks = new Map<string, Mark>()
    let last = 0
    // Every member is listed, because spreads would cost more than the rest of this call, which each operation of a
    // task makes.
    for (let n = 0; n < events.length; n++) {
      const { who, name, at, told } = events[n] as Deferred
      const { id = '', seq = 0 } = emitted[n] ?? {}
      const { task, run = null, payload, changes } = told
      const { by, origin } = who
      values.push(seq, id, task.id, run, name, at, by.kind, by.ref, origin.kind, origin.ref, json(payload))
      const before = marks.get(task.id)
      const columns: Mark['columns'] = Object.assign(before?.columns ?? {}, changes)
      columns.latest_event_seq = seq
      if (name !== QUIET) columns.last_activity_at = at
      marks.set(task.id, { columns, count: (before?.count ?? 0) + 1, before: before?.before ?? task.event_count })
      last = seq
    }
    t.run(insertOf(events.length), values)
    for (const [id, { columns, count, before = this.#countOf(t, id) }] of marks) {
      mark(t, id, columns, count)
      this.kernel.db.onDurable(t, () => this.wake(id))
      this.#counts.set(id, before + count)
      if (before >= LIMITS.events.kept + LIMITS.events.slack) this.#prune(t, id)
    }
    return last
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

  #countOf(t: Tx, task: string): number {
    if (this.#counts.size >= COUNTED) this.#counts.clear()
    const row = () => t.row('SELECT event_count FROM tasks_task WHERE id = ?', [task])
    return this.#counts.get(task) ?? Number(row()?.[0])
  }

  #prune(t: Tx, task: string): void {
    const oldest = t.row('SELECT seq FROM tasks_event WHERE task_id = ? ORDER BY seq DESC LIMIT 1 OFFSET +?', [
      task,
      LIMITS.events.kept - 1,
    ])
    this.#counts.delete(task)
    if (oldest === undefined) return
    t.run('DELETE FROM tasks_event WHERE task_id = ? AND seq < ?', [task, oldest[0] ?? 0])
    t.run('UPDATE tasks_task SET event_count = ? WHERE id = ?', [LIMITS.events.kept, task])
  }
}

const emissionOf = ({ who, name, told: { task, run, payload } }: Deferred): Emission => [
  TaskEvents[name],
  run === undefined ? { ...payload, task_id: task.id } : { ...payload, task_id: task.id, run_id: run },
  { actor: who.actor, subject: task.id, scope: task.workspace_id ?? undefined },
]

const INSERT = `INSERT INTO tasks_event (${eventTable.columns}) VALUES `
const ROW = `(${eventTable.columns.replace(/\w+/g, '?')})`
const insertOf = (count: number): string => INSERT + ROW + `, ${ROW}`.repeat(count - 1)

/** Maximum number of tasks whose events are counted in memory. */
const COUNTED = 10_000
/** Statements by the columns that change: the same few are used repeatedly. */
const statements = new Map<string, string>()

/** Changes columns of a task that has more events. */
function mark(t: Tx, id: string, changes: Partial<TaskRow>, count: number): void {
  const names = Object.keys(changes)
  const key = `${count},${names.join()}`
  const assigned = () => names.map(name => `${sqlName(name)} = ?, `).join('')
  const sql =
    statements.get(key) ?? `UPDATE tasks_task SET ${assigned()}event_count = event_count + ${count} WHERE id = ?`
  statements.set(key, sql)
  t.run(sql, [...Object.values(changes), id])
}
