import { type Db, messageOf, type Reads, type SqlValue, type Tx, turn } from '../../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../../schemas/kernel/diagnostic.js'
import { ArchiveReader, type ArchivesApi } from '../../../desk/archives/api.js'
import { TaskErrors } from '../api.js'
import type { TaskCore } from '../core.js'
import { FINAL_TASK } from '../states.js'
import { TASK_TABLES } from '../tables.js'
import type { TaskRow } from '../tasks/task-row.js'
import { runKinds } from '../totals.js'
import { archivedParts, archivedTasks, HELD, MOVED } from './table.js'

const DAY_MS = 24 * 60 * 60_000
/** Delay after a start, so that this work does not compete with it. */
const FIRST_MS = 60_000
const EVERY_MS = 60 * 60_000
/** Pause between two moves, so that requests are handled in between. */
const PAUSE_MS = 10
/** Roots per query. */
const ROOTS = 64
/** Tasks and events per move; each move blocks the event loop for a few milliseconds. */
const MOST_TASKS = 64
const MOST_EVENTS = 1000
/** IDs rewritten per transaction. */
const SHORTENED = 500
/** Maximum number of tasks in a tree; a larger tree stays in the catalog. */
const LARGEST_TREE = 500

const PARTS: ReadonlySet<string> = new Set(['tasks_run', 'tasks_review'])

type Row = Readonly<Record<string, SqlValue>>
/** Rows of some tasks, table by table as in {@link MOVED}. */
type Rows = readonly (readonly Row[])[]

/** The position of a task in the scan, oldest first. */
type Position = readonly [at: number, id: string]

/** Finished tasks outside of the catalog. */
export class TaskArchive {
  readonly #reader: ArchiveReader
  /** Cached until the next move, because the query scans all IDs. */
  #segments: readonly number[] | undefined

  constructor(
    private readonly core: TaskCore,
    private readonly archives: () => ArchivesApi | undefined,
    /** Days after which a finished task is moved; 0: never. */
    private readonly days: () => number,
  ) {
    this.#reader = new ArchiveReader({
      log: core.kernel.log,
      archives,
      tables: TASK_TABLES,
      off: TaskErrors.task_archive_off,
      unreadable: {
        id: 'tasks.archive',
        code: 'task_archive_unreadable',
        category: 'tasks',
        title: 'tasks of the archive cannot be read',
      },
    })
  }

  /** Segment of an archived task. */
  segmentOf(id: string, reads: Reads = this.core.kernel.db): number | undefined {
    return archivedTasks.segmentOf(reads, id)
  }

  /** Segment of a run or review of an archived task. */
  segmentOfPart(id: string): number | undefined {
    return archivedParts.segmentOf(this.core.kernel.db, id)
  }

  /** Reads a segment. @throws Fault `archive_missing`, `task_archive_off` when the plugin `archives` does not run */
  use<T>(segment: number, use: (db: Db) => T | Promise<T>): Promise<T> {
    return this.#reader.use(segment, use)
  }

  /** {@link use} for lists: see {@link ArchiveReader.tryUse}. */
  tryUse<T>(segment: number, use: (db: Db) => T | Promise<T>): Promise<T | undefined> {
    return this.#reader.tryUse(segment, use)
  }

  /** Findings for `svc doctor`: segments that could not be read. */
  findings(): DiagnosticItem[] {
    return this.#reader.findings()
  }

  /** Segments with tasks, the newest first. */
  segments(): readonly number[] {
    this.#segments ??= archivedTasks.segments(this.core.kernel.db)
    return this.#segments
  }

  /** Moves old tasks periodically, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.core.kernel
    for (let wait = FIRST_MS; ; wait = EVERY_MS) {
      await clock.sleep(wait, signal).catch(() => {})
      if (signal.aborted) return
      await this.sweep(signal).catch(error => log.warn(`tasks are not archived: ${messageOf(error)}`))
    }
  }

  /** Moves every finished tree of tasks that is old enough; resolves to the number of tasks. */
  async sweep(signal?: AbortSignal): Promise<number> {
    const { clock } = this.core.kernel
    await this.#shorten(signal)
    const days = this.days()
    if (days === 0 || !this.archives()) return 0
    const before = clock.now() - days * DAY_MS
    let moved = 0
    for (let after: Position | undefined = [0, '']; after && !signal?.aborted; ) {
      const found = this.#next(after, before)
      after = found.last
      if (found.ids.length > 0) moved += await this.#move(found.ids, before)
      await turn()
      if (found.ids.length > 0 && !signal?.aborted) await clock.sleep(PAUSE_MS, signal).catch(() => {})
    }
    return moved
  }

  /** Brings the tree of a task back into the catalog. @throws Fault `task_not_found`, `archive_missing` */
  async restore(id: string): Promise<void> {
    const { db } = this.core.kernel
    const segment = this.segmentOf(id)
    if (segment === undefined) {
      this.core.tasks.find(id)
      return
    }
    await this.use(segment, async old => {
      const ids = this.#wholeTree(old, id)
      const rows = rowsOf(old, ids)
      await db.tx(t => {
        const there = ids.filter(one => this.segmentOf(one, t) === segment)
        if (there.length !== ids.length) return
        insertRows(t, rows)
        archivedTasks.remove(t, ids)
        archivedParts.remove(t, partsOf(rows))
        this.#moved(t, ids)
        this.#count(t, rows, 1)
      })
      await old.tx(t => deleteRows(t, ids))
    })
  }

  /** Rewrites IDs that an earlier version stored as text, in batches. */
  async #shorten(signal?: AbortSignal): Promise<void> {
    const { db, clock } = this.core.kernel
    for (const ids of [archivedTasks, archivedParts])
      while (!signal?.aborted && (await db.tx(t => ids.shorten(t, SHORTENED))) === SHORTENED)
        await clock.sleep(PAUSE_MS, signal).catch(() => {})
  }

  /** The cached knowledge of segments may be outdated, and the readers of these tasks look for them elsewhere. */
  #moved(t: Tx, ids: readonly string[]): void {
    this.#segments = undefined
    this.core.rowsMoved(t)
    this.core.kernel.db.onDurable(t, () => {
      this.#segments = undefined
      for (const id of ids) this.core.journal.wake(id)
    })
  }

  /** Tasks of the next movable trees, and the position to continue from. */
  #next(after: Position, before: number): { readonly ids: string[]; readonly last?: Position } {
    const { db } = this.core.kernel
    // The plus disables the index by status, with which each move would read and sort all finished tasks.
    const roots = db.all<Pick<TaskRow, 'id' | 'last_activity_at'>>(
      `SELECT id, last_activity_at FROM tasks_task
       WHERE (last_activity_at, id) > (?, ?) AND last_activity_at < ? AND parent_task_id IS NULL
         AND +status IN ('completed', 'failed', 'canceled')
       ORDER BY last_activity_at, id LIMIT +?`,
      [...after, before, ROOTS],
    )
    const ids: string[] = []
    let events = 0
    let last: Position | undefined
    for (const { id, last_activity_at: at } of roots) {
      const tree = this.#finished(id, before)
      const more = tree?.reduce((sum, { event_count: count }) => sum + count, 0) ?? 0
      if (tree && ids.length > 0 && (ids.length + tree.length > MOST_TASKS || events + more > MOST_EVENTS))
        return { ids, last: last ?? after }
      last = [at, id]
      if (!tree) continue
      ids.push(...tree.map(task => task.id))
      events += more
    }
    return { ids, ...(roots.length === ROOTS && last ? { last } : {}) }
  }

  /** The tree of a root; undefined when a task in it is unfinished or not old enough. */
  #finished(root: string, before: number, reads: Reads = this.core.kernel.db): TaskRow[] | undefined {
    const tree: TaskRow[] = []
    for (const next = [root]; next.length > 0; ) {
      const task = this.core.tasks.get(next.pop() ?? '', reads)
      if (!task || !FINAL_TASK.has(task.status) || task.last_activity_at >= before) return undefined
      if (task.attention_at !== null || task.paused_at !== null || tree.length === LARGEST_TREE) return undefined
      tree.push(task)
      next.push(...this.core.tasks.children(task.id, reads).map(({ id }) => id))
    }
    return reads.row(HELD, [JSON.stringify(tree.map(({ id }) => id))]) ? undefined : tree
  }

  /** Moves all of these tasks, or none when one has changed in the meantime. */
  async #move(ids: readonly string[], before: number): Promise<number> {
    const { db } = this.core.kernel
    const rows = rowsOf(db, ids)
    const segment = await this.#reader.add(t => insertRows(t, rows))
    return db.tx(t => {
      const roots = (rows[0] as unknown as readonly TaskRow[]).filter(({ parent_task_id: parent }) => parent === null)
      if (!roots.every(({ id }) => this.#finished(id, before, t)) || !sameRows(rows, rowsOf(t, ids))) return 0
      deleteRows(t, ids)
      archivedTasks.put(t, ids, segment)
      archivedParts.put(t, partsOf(rows), segment)
      this.#moved(t, ids)
      this.#count(t, rows, -1)
      return ids.length
    })
  }

  /** The IDs of a task's whole tree in a segment; trees are moved as a whole. */
  #wholeTree(db: Db, id: string): string[] {
    const sql = `WITH RECURSIVE
      up(id, parent) AS (
        SELECT id, parent_task_id FROM tasks_task WHERE id = ?
        UNION SELECT t.id, t.parent_task_id FROM tasks_task t JOIN up ON t.id = up.parent),
      down(id) AS (
        SELECT id FROM up WHERE parent IS NULL UNION SELECT t.id FROM tasks_task t JOIN down ON t.parent_task_id = down.id)
      SELECT id FROM down`
    return db.rows(sql, [id]).map(([one]) => String(one))
  }

  /** Adds tasks and runs to (1) or removes them from (-1) the counts by status. */
  #count(t: Tx, rows: Rows, by: 1 | -1): void {
    const { tasks, runs } = this.core.totals
    const [allTasks = [], allRuns = []] = rows as readonly (readonly Record<string, string>[])[]
    for (const { scope = '', status } of allTasks)
      if (by > 0) tasks.moved(t, scope, undefined, status)
      else tasks.moved(t, scope, status, undefined)
    for (const { origin_kind: origin = '', place: workspaceId = '', status } of allRuns)
      if (by > 0) runs.moved(t, runKinds(origin, workspaceId), undefined, status)
      else runs.moved(t, runKinds(origin, workspaceId), status, undefined)
  }
}

function rowsOf(reads: Reads, ids: readonly string[]): Rows {
  const json = JSON.stringify(ids)
  return MOVED.map(([table, column]) =>
    reads.all<Row>(`SELECT * FROM ${table} WHERE ${column} IN (SELECT value FROM json_each(?))`, [json]),
  )
}

/** Ids of the runs and reviews among rows. */
const partsOf = (rows: Rows): string[] =>
  MOVED.flatMap(([table], at) => (PARTS.has(table) ? (rows[at] ?? []).map(({ id }) => String(id)) : []))

const sameRows = (a: Rows, b: Rows): boolean => JSON.stringify(a, plain) === JSON.stringify(b, plain)
const plain = (_: string, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value)

/** Inserts rows, also after an interrupted move that left some of them. */
function insertRows(t: Tx, rows: Rows): void {
  deleteRows(
    t,
    (rows[0] ?? []).map(({ id }) => String(id)),
  )
  for (const [at, [table]] of MOVED.entries())
    for (const row of rows[at] ?? []) {
      const values = table === 'tasks_run' && isKeyTaken(t, row) ? { ...row, idempotency_key: null } : row
      const names = Object.keys(values)
      const marks = names.map(() => '?').join(', ')
      t.run(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${marks})`, Object.values(values))
    }
}

/** Whether another run has the idempotency key of a run. Keys become free when their run is archived. */
function isKeyTaken(t: Tx, { origin_kind: kind, origin_ref: ref, idempotency_key: key }: Row): boolean {
  if (key === null || key === undefined) return false
  const sql = `SELECT 1 FROM tasks_run WHERE origin_kind = ? AND origin_ref = ? AND idempotency_key = ?
    AND idempotency_key IS NOT NULL`
  return t.row(sql, [kind ?? null, ref ?? null, key]) !== undefined
}

function deleteRows(t: Tx, ids: readonly string[]): void {
  const json = JSON.stringify(ids)
  for (const [table, column] of MOVED)
    t.run(`DELETE FROM ${table} WHERE ${column} IN (SELECT value FROM json_each(?))`, [json])
}
