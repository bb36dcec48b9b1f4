import * as v from 'valibot'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { Paging } from '../../../../kernel/kit/page.js'
import { type Actor, KernelErrors, type SqlValue } from '../../../../kernel/plugin.js'
import type { ListTasksQuery, ListTasksReply, Owner, TaskItem, TaskStatus } from '../../../../schemas/tasks.js'
import { readingOf } from '../archive/reading.js'
import type { TaskArchive } from '../archive/task-archive.js'
import type { TaskCore } from '../core.js'
import { PRIORITY } from '../limits.js'
import { runFacts } from '../runs/run-row.js'
import { type TaskRow, taskFacts } from '../tasks/task-row.js'

const DEFAULT_LIMIT = 50
/** Maximum number of owners in the facets, those with the most tasks. */
const OWNERS = 50

/** Condition: a run of the task requested that network channel. */
export const IN_CHANNEL = 'id IN (SELECT task_id FROM tasks_run WHERE channel = ?)'

/** A position in the list: priority or 0, last activity, ID; in the archive also the segment. */
type Position = readonly [number, number, string] | readonly [number, number, string, number]
/** Before the first row of a segment. */
const BEFORE_ALL = [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, ''] as const
/** Segments searched per page. */
const MOST_SEGMENTS = 8

interface Page {
  readonly tasks: TaskItem[]
  readonly next?: Position
}

/** Conditions and order of a list. */
interface Wanted {
  readonly where: string
  readonly params: readonly SqlValue[]
  readonly byPriority: boolean
}

type Condition = readonly [sql: string, ...params: SqlValue[]]

/** The list of tasks. */
export class TaskCatalog {
  readonly #paging = new Paging<Position>({
    place: v.union([
      v.strictTuple([v.number(), v.number(), v.string()]),
      v.strictTuple([v.number(), v.number(), v.string(), v.number()]),
    ]),
    invalid: () => KernelErrors.invalid_cursor(undefined, { next: command('task list') }),
  })

  constructor(
    private readonly core: TaskCore,
    private readonly archive: TaskArchive,
  ) {}

  /**
   * One page, by last activity or by priority: first the tasks of the catalog, which `total` and the facets count, then those of
   * the archive by segment. `workspace` is the ID of the requested workspace.
   */
  async list(actor: Actor, query: ListTasksQuery, workspace: string | undefined): Promise<ListTasksReply> {
    const { db } = this.core.kernel
    const wanted = wantedOf(query, workspace)
    const of = { actor, query }
    const after = this.#paging.after(of, query.cursor)
    const { tasks, next } = await this.#page(wanted, after, query.limit ?? DEFAULT_LIMIT)
    const { where, params } = wanted
    const statuses = db.rows(`SELECT status, count(*) FROM tasks_task ${where} GROUP BY status ORDER BY status`, [
      ...params,
    ])
    const owners = db.rows(
      `SELECT owner_kind, owner_ref, count(*) FROM tasks_task ${where} AND owner_kind IS NOT NULL
       GROUP BY owner_kind, owner_ref ORDER BY count(*) DESC, owner_kind, owner_ref LIMIT ${OWNERS}`,
      params,
    )
    return {
      tasks,
      page: {
        has_more: next !== undefined,
        ...(next ? { next_cursor: this.#paging.cursor(of, next) } : {}),
        limit: query.limit ?? DEFAULT_LIMIT,
        total: statuses.reduce((sum, [, count]) => sum + Number(count), 0),
      },
      facets: {
        statuses: statuses.map(([status, count]) => ({ status: status as TaskStatus, count: Number(count) })),
        owners: owners.map(([kind, ref, count]) => ({ owner: { kind, ref } as Owner, count: Number(count) })),
      },
    }
  }

  async #page(wanted: Wanted, after: Position | undefined, limit: number): Promise<Page> {
    let from = after?.[3]
    if (from === undefined) {
      const page = pageOf(this.core, wanted, after, limit)
      from = this.archive.segments()[0]
      if (page.next || from === undefined) return page
      if (page.tasks.length > 0) return { ...page, next: [...BEFORE_ALL, from] }
    }
    let position: Position | undefined = after?.[3] === undefined ? undefined : after
    let opened = 0
    for (const segment of this.archive.segments().filter(one => one <= from)) {
      if (opened++ === MOST_SEGMENTS) return { tasks: [], next: [...BEFORE_ALL, segment] }
      // A segment added since the last page is skipped; a position in another segment does not apply here.
      const at: Position | undefined = position?.[3] === segment ? position : undefined
      const page = await this.archive.tryUse(segment, db => {
        const { core } = readingOf(this.core.kernel, db)
        return pageOf(core, wanted, at, limit, id => this.archive.segmentOf(id) === segment)
      })
      position = undefined
      if (!page) continue
      if (page.next) return { ...page, next: [page.next[0], page.next[1], page.next[2], segment] }
      if (page.tasks.length === 0) continue
      const older = this.archive.segments().find(one => one < segment)
      return { tasks: page.tasks, ...(older === undefined ? {} : { next: [...BEFORE_ALL, older] as const }) }
    }
    return { tasks: [] }
  }
}

/** One page of one database; `isThere`: whether a row counts. */
function pageOf(
  core: TaskCore,
  { where, params, byPriority }: Wanted,
  after: Position | undefined,
  limit: number,
  isThere: (id: string) => boolean = () => true,
): Page {
  const positionColumn = byPriority ? 'priority' : '0'
  const found: TaskRow[] = []
  for (let at = after?.slice(0, 3); found.length <= limit; ) {
    const rows = core.kernel.db.all<TaskRow>(
      `SELECT * FROM tasks_task ${where}${at ? ` AND (${positionColumn}, last_activity_at, id) < (?, ?, ?)` : ''}
       ORDER BY ${byPriority ? 'priority DESC, ' : ''}last_activity_at DESC, id DESC LIMIT +?`,
      [...params, ...(at ?? []), limit + 1],
    )
    found.push(...rows.filter(({ id }) => isThere(id)))
    const last = rows.at(-1)
    if (!last || rows.length <= limit) break
    at = [...positionOf(last, byPriority)]
  }
  const page = found.slice(0, limit)
  const last = page.at(-1)
  const next = last && found.length > limit ? { next: positionOf(last, byPriority) } : {}
  return { tasks: page.map(row => itemOf(core, row)), ...next }
}

const positionOf = (row: TaskRow, byPriority: boolean): Position => [
  byPriority ? row.priority : 0,
  row.last_activity_at,
  row.id,
]

function itemOf(core: TaskCore, row: TaskRow): TaskItem {
  const count = (sql: string) => Number(core.kernel.db.row(sql, [row.id])?.[0] ?? 0)
  const [active] = core.runs.open(row.id)
  return {
    ...taskFacts(row, core.tasks.more(row)),
    active_run: active ? runFacts(active, row.max_attempts) : null,
    child_count: count('SELECT count(*) FROM tasks_task WHERE parent_task_id = ?'),
    dependency_count: count('SELECT count(*) FROM tasks_dependency WHERE task_id = ?'),
    last_activity_at: new Date(row.last_activity_at).toISOString(),
  }
}

function wantedOf(query: ListTasksQuery, workspace: string | undefined): Wanted {
  const conditions = conditionsOf(query, workspace)
  return {
    where: `WHERE ${conditions.map(([sql]) => sql).join(' AND ')}`,
    params: conditions.flatMap(([, ...values]) => values),
    byPriority: query.sort === 'priority',
  }
}

/** The filters of a list; drafts are excluded unless requested. */
function conditionsOf(query: ListTasksQuery, workspace: string | undefined): Condition[] {
  const conditions: (Condition | undefined)[] = [
    query.scope && query.scope !== 'all' ? ['scope = ?', query.scope] : undefined,
    workspace === undefined ? undefined : ['workspace_id = ?', workspace],
    query.status ? ['status = ?', query.status] : undefined,
    query.priority ? ['priority = ?', PRIORITY[query.priority]] : undefined,
    query.include_drafts || query.status === 'draft' ? undefined : ["status <> 'draft'"],
    query.approval_state ? ['approval_state = ?', query.approval_state] : undefined,
    query.owner_kind ? ['owner_kind = ?', query.owner_kind] : undefined,
    query.owner_ref ? ['owner_ref = ?', query.owner_ref] : undefined,
    query.parent_task_id ? ['parent_task_id = ?', query.parent_task_id] : undefined,
    query.participation_channel ? [IN_CHANNEL, query.participation_channel] : undefined,
    query.query
      ? [
          "(instr(lower(title), lower(?)) > 0 OR instr(lower(ifnull(identifier, '')), lower(?)) > 0)",
          query.query,
          query.query,
        ]
      : undefined,
  ]
  return [['1'], ...conditions.filter((condition): condition is Condition => condition !== undefined)]
}
