import { command } from '../../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../../kernel/kit/text.js'
import type { Db, Reads } from '../../../../kernel/plugin.js'
import type { BlockedReason, Task } from '../../../../schemas/tasks.js'
import { TaskErrors } from '../api.js'
import { archivedTasks } from '../archive/table.js'
import { type TaskMore, type TaskRow, taskToWire } from './task-row.js'

/** An open block of a task. */
interface OpenBlock {
  readonly id: string
  readonly kind: NonNullable<BlockedReason['kind']>
  readonly reason: string
}

/** Reads tasks, also inside of transactions. */
export class TaskStore {
  constructor(
    private readonly db: Db,
    private readonly now: () => number,
  ) {}

  get(id: string, reads: Reads = this.db): TaskRow | undefined {
    return reads.get<TaskRow>('SELECT * FROM tasks_task WHERE id = ?', [id])
  }

  /** The task, and whether anything keeps its runs from being claimed: {@link holds} without the reasons, in one statement. */
  getHeld(id: string, reads: Reads): { readonly task: TaskRow; readonly isHeld: boolean } | undefined {
    const row = reads.get<TaskRow & { readonly held: number }>(
      `SELECT *, pausing_task IS NOT NULL OR approval_policy = 'manual' AND approval_state <> 'approved'
         OR EXISTS (SELECT 1 FROM tasks_dependency d LEFT JOIN tasks_task x ON x.id = d.depends_on
                    WHERE d.task_id = ?1 AND ifnull(x.status, '') <> 'completed')
         OR EXISTS (SELECT 1 FROM tasks_block
                    WHERE task_id = ?1 AND cleared_at IS NULL AND ifnull(expires_at, 9e15) > ?2) AS held
       FROM tasks_task WHERE id = ?1`,
      [id, this.now()],
    )
    if (!row) return undefined
    const { held, ...task } = row
    return { task, isHeld: held === 1 }
  }

  /** Throws `task_not_found` (404), `task_archived` (409) for a task that has to be restored before a change. */
  find(id: string, reads: Reads = this.db): TaskRow {
    const row = this.get(id, reads)
    if (!row && archivedTasks.segmentOf(reads, id) !== undefined)
      throw TaskErrors.task_archived(`task ${shown(id)} is in the archive, where it can be read only`, {
        next: command('task restore', id),
      })
    if (!row) throw TaskErrors.task_not_found(`task not found: ${shown(id)}`)
    return row
  }

  toWire(row: TaskRow, reads: Reads = this.db): Task {
    return taskToWire(row, this.more(row, reads))
  }

  more(row: TaskRow, reads: Reads = this.db): TaskMore {
    const run = reads.row(
      `SELECT id FROM tasks_run WHERE task_id = ? AND status NOT IN ('completed', 'failed', 'canceled')
       ORDER BY attempt DESC, queued_at DESC, id DESC LIMIT 1`,
      [row.id],
    )
    return { currentRun: run ? String(run[0]) : undefined, blockedReasons: this.blockedBy(row, reads) }
  }

  /** All current reasons why the runs of a task cannot be claimed; none for a task that has ended. */
  blockedBy(row: TaskRow, reads: Reads = this.db): BlockedReason[] {
    return row.status === 'completed' || row.status === 'canceled' ? [] : this.holds(row, reads)
  }

  /** The blocking reasons of a task regardless of its stored status, because an ended task may be about to reopen. */
  holds(row: TaskRow, reads: Reads): BlockedReason[] {
    const waitsFor = this.unresolved(row.id, reads)
    const reasons: BlockedReason[] = []
    if (waitsFor.length > 0) reasons.push({ source: 'dependency', depends_on_task_ids: waitsFor })
    if (row.approval_policy === 'manual' && row.approval_state !== 'approved') {
      const reason = row.approval_state === 'rejected' ? 'approval rejected' : 'waiting for approval'
      reasons.push({ source: 'approval', reason })
    }
    if (row.pausing_task !== null) {
      const reason = row.pausing_task === row.id ? row.paused_reason : `parent task ${row.pausing_task} is paused`
      reasons.push({ source: 'paused', reason: reason ?? '' })
    }
    for (const { id, kind, reason } of this.openBlocks(row.id, reads))
      reasons.push({ source: 'block', block_id: id, kind, reason })
    return reasons
  }

  /** Uncompleted dependencies of a task. */
  unresolved(id: string, reads: Reads = this.db): string[] {
    return reads
      .rows(
        `SELECT d.depends_on FROM tasks_dependency d LEFT JOIN tasks_task x ON x.id = d.depends_on
         WHERE d.task_id = ? AND ifnull(x.status, '') <> 'completed' ORDER BY d.depends_on`,
        [id],
      )
      .map(([depends]) => String(depends))
  }

  openBlocks(id: string, reads: Reads = this.db): OpenBlock[] {
    const open = reads.all<OpenBlock & { readonly created_at: number }>(
      `SELECT id, kind, reason, created_at FROM tasks_block
       WHERE task_id = ? AND cleared_at IS NULL AND ifnull(expires_at, 9e15) > ?`,
      [id, this.now()],
    )
    // Called on every change and usually empty: setting up a sort in SQLite would cost more than the query.
    return open.sort((a, b) => a.created_at - b.created_at || (a.id < b.id ? -1 : 1))
  }

  children(id: string, reads: Reads = this.db): TaskRow[] {
    return reads.all<TaskRow>('SELECT * FROM tasks_task WHERE parent_task_id = ? ORDER BY created_at, id', [id])
  }

  /** A task and its descendants, parents first. */
  subtree(id: string, reads: Reads = this.db): TaskRow[] {
    const found: TaskRow[] = [this.find(id, reads)]
    for (let at = 0; at < found.length; at++) found.push(...this.children(found[at]?.id ?? '', reads))
    return found
  }

  /** Level of a task in its hierarchy; 1 for the root. */
  depth(id: string, reads: Reads = this.db): number {
    let depth = 0
    for (let at = this.get(id, reads); at; at = at.parent_task_id ? this.get(at.parent_task_id, reads) : undefined)
      depth++
    return depth
  }
}
