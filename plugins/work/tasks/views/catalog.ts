import * as v from 'valibot'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { Paging } from '../../../../kernel/kit/page.js'
import { type Actor, KernelErrors, type SqlValue } from '../../../../kernel/plugin.js'
import type { ListTasksQuery, ListTasksReply, Owner, TaskItem, TaskStatus } from '../../../../schemas/tasks.js'
import type { TaskCore } from '../core.js'
import { PRIORITY } from '../limits.js'
import { runFacts } from '../runs/run-row.js'
import { type TaskRow, taskFacts } from '../tasks/task-row.js'

const DEFAULT_LIMIT = 50
/** Maximum number of owners in the facets, those with the most tasks. */
const OWNERS = 50

/** A run of the task requested that network channel. */
export const IN_CHANNEL = 'id IN (SELECT task_id FROM tasks_run WHERE channel = ?)'

type Condition = readonly [sql: string, ...params: SqlValue[]]

/** The list of tasks. */
export class TaskCatalog {
  readonly #paging = new Paging({
    place: v.tuple([v.number(), v.number(), v.string()]),
    invalid: () => KernelErrors.invalid_cursor(undefined, { next: command('task list') }),
  })

  constructor(private readonly core: TaskCore) {}

  /** One page, by last activity or by priority. `workspace` is the id of the requested workspace. */
  list(actor: Actor, query: ListTasksQuery, workspace: string | undefined): ListTasksReply {
    const { db } = this.core.kernel
    const conditions = conditionsOf(query, workspace)
    const where = `WHERE ${conditions.map(([sql]) => sql).join(' AND ')}`
    const params = conditions.flatMap(([, ...values]) => values)
    const of = { actor, query }
    const byPriority = query.sort === 'priority'
    const after = this.#paging.after(of, query.cursor)
    const first = byPriority ? 'priority' : '0'
    const limit = query.limit ?? DEFAULT_LIMIT
    const rows = db.all<TaskRow>(
      `SELECT * FROM tasks_task ${where}${after ? ` AND (${first}, last_activity_at, id) < (?, ?, ?)` : ''}
       ORDER BY ${byPriority ? 'priority DESC, ' : ''}last_activity_at DESC, id DESC LIMIT +?`,
      [...params, ...(after ?? []), limit + 1],
    )
    const cut = this.#paging.cut(of, rows, limit, row => [byPriority ? row.priority : 0, row.last_activity_at, row.id])
    const statuses = db.rows(`SELECT status, count(*) FROM tasks_task ${where} GROUP BY status ORDER BY status`, params)
    const owners = db.rows(
      `SELECT owner_kind, owner_ref, count(*) FROM tasks_task ${where} AND owner_kind IS NOT NULL
       GROUP BY owner_kind, owner_ref ORDER BY count(*) DESC, owner_kind, owner_ref LIMIT ${OWNERS}`,
      params,
    )
    const { rows: page, ...position } = cut
    return {
      tasks: page.map(row => this.#item(row)),
      page: { ...position, limit, total: statuses.reduce((sum, [, count]) => sum + Number(count), 0) },
      facets: {
        statuses: statuses.map(([status, count]) => ({ status: status as TaskStatus, count: Number(count) })),
        owners: owners.map(([kind, ref, count]) => ({ owner: { kind, ref } as Owner, count: Number(count) })),
      },
    }
  }

  #item(row: TaskRow): TaskItem {
    const { db } = this.core.kernel
    const count = (sql: string) => Number(db.row(sql, [row.id])?.[0] ?? 0)
    const [active] = this.core.runs.open(row.id)
    return {
      ...taskFacts(row, this.core.tasks.more(row)),
      active_run: active ? runFacts(active, row.max_attempts) : null,
      child_count: count('SELECT count(*) FROM tasks_task WHERE parent_task_id = ?'),
      dependency_count: count('SELECT count(*) FROM tasks_dependency WHERE task_id = ?'),
      last_activity_at: new Date(row.last_activity_at).toISOString(),
    }
  }
}

/** The filters of a list; drafts are excluded unless requested. */
function conditionsOf(query: ListTasksQuery, workspace: string | undefined): Condition[] {
  const given: (Condition | undefined)[] = [
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
  return [['1'], ...given.filter((condition): condition is Condition => condition !== undefined)]
}
