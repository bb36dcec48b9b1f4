import { command } from '../../../../kernel/kit/commands/command-line.js'
import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
import { shown } from '../../../../kernel/kit/text.js'
import { iso, type Reads, type Tx } from '../../../../kernel/plugin.js'
import type { CreateBlockBody, TaskActor, TaskBlock } from '../../../../schemas/tasks.js'
import { TaskErrors } from '../api.js'
import type { Settle, TaskCore } from '../core.js'
import { LIMITS } from '../limits.js'
import { optionalMember } from '../rows.js'
import { FINAL_TASK } from '../states.js'
import { actorToWire, type Who, whoOf } from '../who.js'
import { wantAttention } from './attention.js'
import { showHint, type TaskRow, taskTable } from './task-row.js'
import { bounded, checked, invalid } from './write.js'

const { text, time } = column

export const blockTable = table('tasks_block', {
  id: text(),
  task_id: text(),
  kind: text<TaskBlock['kind']>(),
  reason: text(),
  details: text().nullable(),
  created_at: time(),
  created_by_kind: text<TaskActor['kind']>(),
  created_by_ref: text(),
  expires_at: time().nullable(),
  cleared_at: time().nullable(),
  cleared_by_kind: text<TaskActor['kind']>().nullable(),
  cleared_by_ref: text().nullable(),
  clear_note: text().nullable(),
})
type BlockRow = RowOf<typeof blockTable>

/** Blocks of tasks. */
export class Blocks {
  constructor(
    private readonly core: TaskCore,
    /** How often a kind of block may recur before the task needs attention; 0: no limit. */
    private readonly recurrenceLimit: () => number,
  ) {}

  list(id: string, withCleared: boolean): TaskBlock[] {
    const { workspace_id: workspace } = this.core.tasks.find(id)
    const wanted = 'WHERE task_id = ? AND (? OR cleared_at IS NULL) ORDER BY created_at, id LIMIT 1000'
    const rows = blockTable.query(this.core.kernel.db, wanted, [id, Number(withCleared)])
    return rows.map(row => blockToWire(row, workspace))
  }

  /** Blocks a task. A block that recurs too often makes the task need attention. */
  create(who: Who, id: string, body: CreateBlockBody): Promise<TaskBlock> {
    const reason = checked('reason', body.reason, LIMITS.reason)
    if (reason === undefined) throw invalid('reason: required')
    const expires = body.expires_at ? Date.parse(body.expires_at) : null
    if ((expires !== null) !== (body.kind === 'transient'))
      throw invalid(`expires_at: ${body.kind === 'transient' ? 'required' : 'only allowed'} for kind transient`)
    if (expires !== null && expires <= this.core.now())
      throw invalid(`expires_at: must be in the future, not ${body.expires_at}`)
    return this.core.write(who, (t, settle) => {
      const task = this.core.tasks.find(id, t)
      if (FINAL_TASK.has(task.status))
        throw TaskErrors.task_conflict(`task ${id} cannot be blocked: it is ${task.status}`, showHint(id))
      const row: BlockRow = {
        id: this.core.kernel.ids.id('tblk'),
        task_id: id,
        kind: body.kind,
        reason,
        details: bounded('details', body.details),
        created_at: this.core.now(),
        created_by_kind: who.by.kind,
        created_by_ref: who.by.ref,
        expires_at: expires,
        cleared_at: null,
        cleared_by_kind: null,
        cleared_by_ref: null,
        clear_note: null,
      }
      blockTable.insert(t, row)
      this.core.caches.expiry.changed(t, '')
      this.core.deadlines.arm('runs', expires ?? undefined)
      const payload = { block_id: row.id, kind: row.kind, reason }
      this.core.journal.write(t, who, 'task.block.created', { task, payload, ...this.#runOf(t, id, body.run_id) })
      this.#count(t, who, task, row.kind)
      settle(id)
      return blockToWire(row, task.workspace_id)
    })
  }

  clear(who: Who, id: string, blockId: string, note: string | undefined): Promise<TaskBlock> {
    const why = checked('note', note, LIMITS.reason) ?? null
    return this.core.write(who, (t, settle) => {
      const task = this.core.tasks.find(id, t)
      const block = blockTable.get(t, { id: blockId, task_id: id })
      if (!block)
        throw TaskErrors.task_block_not_found(`task ${id} has no block ${shown(blockId)}`, {
          next: command('task blocks', id),
        })
      if (block.cleared_at !== null) return blockToWire(block, task.workspace_id)
      const cleared = clear(this.core, t, who, block, why)
      this.core.journal.write(t, who, 'task.block.cleared', { task, payload: { block_id: blockId, note: why ?? '' } })
      settle(id)
      return blockToWire(cleared, task.workspace_id)
    })
  }

  /** The run that the block refers to. Throws `task_run_not_found` (404), `task_invalid` (422) for one of another task. */
  #runOf(t: Tx, task: string, id: string | undefined): { readonly run?: string } {
    if (id === undefined) return {}
    const run = this.core.runs.find(id, t)
    if (run.task_id !== task) throw invalid(`run_id: run ${id} is of task ${run.task_id}`)
    return { run: id }
  }

  #count(t: Tx, who: Who, task: TaskRow, kind: string): void {
    const counts: Record<string, number> = task.recurrences === null ? {} : JSON.parse(task.recurrences)
    const count = (counts[kind] ?? 0) + 1
    taskTable.update(t, { id: task.id }, { recurrences: JSON.stringify({ ...counts, [kind]: count }) })
    const limit = this.recurrenceLimit()
    if (limit > 0 && count > limit) wantAttention(this.core, t, who, task, `blocked ${count} times with kind ${kind}`)
  }
}

function clear(core: TaskCore, t: Tx, who: Who, block: BlockRow, note: string | null): BlockRow {
  const changes = {
    cleared_at: core.now(),
    cleared_by_kind: who.by.kind,
    cleared_by_ref: who.by.ref,
    clear_note: note,
  }
  blockTable.update(t, { id: block.id }, changes)
  core.caches.expiry.changed(t, '')
  return { ...block, ...changes }
}

/** When the first transient block ends, in epoch milliseconds. */
export function firstExpiry({ caches }: TaskCore, reads: Reads): number | undefined {
  const sql = 'SELECT min(expires_at) FROM tasks_block WHERE cleared_at IS NULL AND expires_at IS NOT NULL'
  const { at } = caches.expiry.read('', () => ({ at: (reads.row(sql)?.[0] ?? null) as number | null }))
  return at ?? undefined
}

/** Clears the transient blocks that are over. */
export function expireBlocks(core: TaskCore, t: Tx, settle: Settle): void {
  const first = firstExpiry(core, t)
  if (first === undefined || first > core.now()) return
  const who = whoOf(core.kernel.actor)
  const over = blockTable.query(
    t,
    'WHERE cleared_at IS NULL AND expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT +?',
    [core.now(), LIMITS.batch],
  )
  for (const block of over) {
    const task = core.tasks.find(block.task_id, t)
    clear(core, t, who, block, 'expired')
    core.journal.write(t, who, 'task.block.expired', { task, payload: { block_id: block.id } })
    settle(task.id)
  }
}

function blockToWire(row: BlockRow, workspace: string | null): TaskBlock {
  return {
    id: row.id,
    task_id: row.task_id,
    ...optionalMember('workspace_id', workspace),
    kind: row.kind,
    reason: row.reason,
    ...(row.details === null ? {} : { details: JSON.parse(row.details) }),
    created_at: iso(row.created_at),
    created_by: actorToWire(row.created_by_kind, row.created_by_ref),
    expires_at: row.expires_at === null ? null : iso(row.expires_at),
    cleared_at: row.cleared_at === null ? null : iso(row.cleared_at),
    cleared_by: row.cleared_by_kind === null ? null : actorToWire(row.cleared_by_kind, row.cleared_by_ref),
    ...optionalMember('clear_note', row.clear_note),
  }
}
