import { createHash } from 'node:crypto'
import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
import { shown } from '../../../../kernel/kit/text.js'
import { Fault, messageOf, type Tx } from '../../../../kernel/plugin.js'
import type { TaskStatus } from '../../../../schemas/tasks.js'
import { isRestartable, type SessionInfo } from '../../sessions/api.js'
import type { TaskCore } from '../core.js'
import { LIMITS } from '../limits.js'
import { FINAL_TASK } from '../states.js'
import type { Consequences } from '../tasks/reconcile.js'
import type { TaskRow } from '../tasks/task-row.js'
import { type Who, whoOf } from '../who.js'

const { text, time } = column

/** A status change of a task that its creator has not been notified of. */
export const wakeTable = table('tasks_wake', {
  id: text(),
  task_id: text(),
  session_id: text(),
  status: text<TaskStatus>(),
  /** Title of the task at the time of the change. */
  title: text(),
  why: text().nullable(),
  at: time(),
  /** Idempotency key of the turn that reports it; null until the turn is about to be queued. */
  batch: text().nullable(),
})
type WakeRow = RowOf<typeof wakeTable>

export const WAKE_TABLE = `
CREATE TABLE tasks_wake (
  id TEXT PRIMARY KEY NOT NULL, task_id TEXT NOT NULL, session_id TEXT NOT NULL, status TEXT NOT NULL, title TEXT NOT NULL,
  why TEXT, at INTEGER NOT NULL, batch TEXT
) STRICT;
CREATE INDEX tasks_wake_session ON tasks_wake (session_id, at);
CREATE INDEX tasks_wake_task ON tasks_wake (task_id);`

/** Maximum number of changes per turn. */
const BATCH = 20
/** Temporary reasons why a turn cannot be queued. */
const LATER: ReadonlySet<string> = new Set([
  'draining',
  'home_held',
  'storage_full',
  'stopping',
  'queue_full',
  'session_limit',
])
/** The turn of this batch has been queued before, with the titles at that time. */
const QUEUED = 'prompt_idempotency_conflict'

/**
 * Wakes the session that created a task, once for each time that the task ends, is blocked or needs attention. The pending
 * notification is written in the transaction of the change and deleted when its turn has been queued.
 */
export class Wakes {
  #running: Promise<void> | undefined
  #again = false

  constructor(private readonly core: TaskCore) {}

  /** Queues all pending turns; those that cannot be queued now stay pending. Never rejects. */
  deliver(): Promise<void> {
    this.#again = true
    this.#running ??= this.#all().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  /** When pending turns are queued again, in epoch milliseconds; undefined: none is pending. */
  nextDelivery(): number | undefined {
    const isPending = this.core.kernel.db.row('SELECT 1 FROM tasks_wake LIMIT 1') !== undefined
    return isPending ? this.core.now() + LIMITS.intervalMs : undefined
  }

  /** Once the change is durable, wakes waiting claims and queues runs for unblocked tasks. */
  follow(t: Tx, { enqueue, claimable }: Consequences): void {
    const { core } = this
    if (enqueue.length === 0 && !claimable && !core.isPlaceWanted) return
    core.kernel.db.onDurable(t, () => {
      if (claimable || core.isPlaceWanted) core.tellClaimable()
      for (const id of enqueue) void this.#enqueue(id)
    })
  }

  /** Notes the new status of a task for its creator, and delivers it once it is durable. */
  note(t: Tx, who: Who, task: TaskRow, status: TaskStatus): void {
    if (task.wake_creator !== 1 || task.created_by_kind !== 'agent_session') return
    if (!FINAL_TASK.has(status) && status !== 'blocked' && status !== 'needs_attention') return
    const session = task.created_by_ref
    // The session that made the change needs no notification.
    if (who.by.kind === 'agent_session' && who.by.ref === session) {
      this.#suppressed(t, task, session, [status], 'own_change')
      return
    }
    const row: WakeRow = {
      id: this.core.kernel.ids.id('twak'),
      task_id: task.id,
      session_id: session,
      status,
      title: task.title,
      why: status === 'needs_attention' ? task.attention_reason : null,
      at: this.core.now(),
      batch: null,
    }
    wakeTable.insert(t, row)
    this.core.kernel.db.onDurable(t, () => void this.deliver())
  }

  /** Queues a run for an unblocked task. Best effort: a failure is logged. */
  async #enqueue(id: string): Promise<void> {
    const who = whoOf(this.core.kernel.actor)
    try {
      await this.core.kernel.needs.daemon.admit('task run')
      await this.core.write(who, (t, settle) => {
        const task = this.core.tasks.get(id, t)
        if (task?.status !== 'ready' || this.core.runs.open(id, t).length > 0) return
        const attempt = this.core.runs.nextAttempt(id, { group: null, index: null }, t)
        this.core.reservations.reserve(t, who, task, { key: `task.auto_enqueue.${id}.${attempt}` })
        this.core.journal.write(t, who, 'task.auto_enqueue.triggered', { task })
        settle(id)
      })
    } catch (error) {
      this.core.kernel.log.warn(`no run was queued for ready task ${id}: ${messageOf(error)}`)
    }
  }

  async #all(): Promise<void> {
    while (this.#again) {
      this.#again = false
      const waiting = this.core.kernel.db.rows('SELECT DISTINCT session_id FROM tasks_wake ORDER BY session_id')
      for (const [session] of waiting) {
        try {
          while (await this.#wake(String(session)));
        } catch (error) {
          this.core.kernel.log.warn(`a session was not notified of its tasks: ${messageOf(error)}`, { session })
          this.#repeat()
        }
      }
    }
  }

  /** Sends the next batch to a session; true when there may be more. */
  async #wake(id: string): Promise<boolean> {
    const rows = await this.#batch(id)
    const batch = rows[0]?.batch
    if (!batch) return false
    const refusal = refusalOf(this.core.kernel.needs.sessions.get(id)) ?? (await this.#queue(id, batch, rows))
    if (refusal !== undefined && LATER.has(refusal)) {
      this.#repeat()
      return false
    }
    const who = whoOf(this.core.kernel.actor)
    await this.core.write(who, t => {
      t.run('DELETE FROM tasks_wake WHERE batch = ?', [batch])
      for (const [taskId, statuses] of byTask(rows)) {
        const task = this.core.tasks.get(taskId, t)
        if (!task) continue
        if (refusal !== undefined) this.#suppressed(t, task, id, statuses, refusal)
        else
          this.core.journal.write(t, who, 'task.wake.delivered', {
            task,
            payload: { session_id: id, statuses },
          })
      }
    })
    return true
  }

  /** Delivers again after the interval. */
  #repeat(): void {
    this.core.deadlines.arm('wakes', this.core.now() + LIMITS.intervalMs)
  }

  /** The next batch: one that the previous daemon may have queued before it was killed, else a new one. */
  #batch(session: string): Promise<readonly WakeRow[]> {
    return this.core.write(whoOf(this.core.kernel.actor), t => {
      const rows = t.all<WakeRow>(
        'SELECT * FROM tasks_wake WHERE session_id = ? ORDER BY batch IS NULL, at, id LIMIT +?',
        [session, BATCH],
      )
      const [first] = rows
      if (!first) return []
      if (first.batch !== null) return rows.filter(({ batch }) => batch === first.batch)
      const batch = `task-wake-${createHash('sha256')
        .update(rows.map(({ id }) => id).join())
        .digest('hex')
        .slice(0, 32)}`
      for (const { id } of rows) t.run('UPDATE tasks_wake SET batch = ? WHERE id = ?', [batch, id])
      return rows.map(row => ({ ...row, batch }))
    })
  }

  /** Returns the error code when the turn was not queued. */
  async #queue(session: string, key: string, rows: readonly WakeRow[]): Promise<string | undefined> {
    try {
      await this.core.kernel.needs.sessions.queue(session, { text: textOf(rows), source: 'tasks', key })
      return undefined
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      return error.code === QUEUED ? undefined : error.code
    }
  }

  #suppressed(t: Tx, task: TaskRow, session: string, statuses: readonly TaskStatus[], reason: string): void {
    const payload = { session_id: session, statuses, reason }
    this.core.journal.write(t, whoOf(this.core.kernel.actor), 'task.wake.suppressed', { task, payload })
  }
}

/** Why a session is not woken: it is deleted or was stopped on purpose. A crashed session is resumed. */
function refusalOf(session: SessionInfo | undefined): string | undefined {
  if (!session) return 'session_gone'
  const { state, stopReason } = session
  const isOver = state === 'stopping' || (state === 'stopped' && !isRestartable(state, stopReason))
  return isOver ? 'session_stopped' : undefined
}

function byTask(rows: readonly WakeRow[]): ReadonlyMap<string, TaskStatus[]> {
  const tasks = new Map<string, TaskStatus[]>()
  for (const { task_id: id, status } of rows) tasks.set(id, [...(tasks.get(id) ?? []), status])
  return tasks
}

const textOf = (rows: readonly WakeRow[]): string =>
  [
    'Automatic notification, not a message from a person: tasks that you created have changed.',
    ...rows.map(
      ({ task_id: id, title, status, why }) =>
        `- task ${id}, ${shown(title)}: ${status}${why === null ? '' : `, ${shown(why)}`}`,
    ),
    'Show a task: svc task get <id>',
  ].join('\n')
