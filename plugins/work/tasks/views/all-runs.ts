import * as v from 'valibot'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { Paging } from '../../../../kernel/kit/page.js'
import { type Actor, KernelErrors, type SqlValue } from '../../../../kernel/plugin.js'
import type { AllRunsReply, ListAllRunsQuery } from '../../../../schemas/tasks.js'
import type { TaskCore } from '../core.js'
import { type RunRow, runToWire } from '../runs/run-row.js'
import { sessionOf } from '../who.js'

const DEFAULT_LIMIT = 50

interface Row extends RunRow {
  /** The rowid: runs queued later have a higher one. */
  readonly number: number
  readonly task_title: string
}

const paging = new Paging({
  place: v.tuple([v.number()]),
  invalid: () => KernelErrors.invalid_cursor(undefined, { next: command('task run all') }),
})

/**
 * A page of the runs of all tasks, newest first. An agent sees the runs of global tasks and of its own workspace.
 */
export function listAllRuns(core: TaskCore, actor: Actor, query: ListAllRunsQuery): AllRunsReply {
  const session = sessionOf(actor)
  const own = session === undefined ? undefined : (core.kernel.needs.sessions.get(session)?.workspaceId ?? '')
  const { limit = DEFAULT_LIMIT } = query
  const of = { actor: { kind: actor.kind, id: actor.id }, query }
  const [before] = paging.after(of, query.cursor) ?? []
  const matched = conditionsOf([
    ['r.status = ?', query.status],
    ["r.place IN ('', ?)", own],
  ])
  const paged = conditionsOf([...matched.given, ['r.rowid < ?', before]])
  const from = 'FROM tasks_run r JOIN tasks_task t ON t.id = r.task_id'
  const rows = core.kernel.db.all<Row>(
    `SELECT r.*, r.rowid AS number, t.title AS task_title ${from} ${paged.where} ORDER BY r.rowid DESC LIMIT +?`,
    [...paged.values, limit + 1],
  )
  const total = matched.where === '' ? undefined : `SELECT count(*) FROM tasks_run r ${matched.where}`
  const { rows: shown, ...position } = paging.cut(of, rows, limit, ({ number }): [number] => [number])
  return {
    runs: shown.map(row => ({ ...runToWire(row), task_title: row.task_title })),
    page: {
      limit,
      total: total === undefined ? allOf(core) : Number(core.kernel.db.row(total, matched.values)?.[0]),
      ...position,
    },
  }
}

type Filter = readonly [sql: string, value: SqlValue | undefined]

function conditionsOf(conditions: readonly Filter[]) {
  const given = conditions.filter(([, value]) => value !== undefined)
  const values = given.map(([, value]) => value as SqlValue)
  return { given, values, where: given.length === 0 ? '' : `WHERE ${given.map(([sql]) => sql).join(' AND ')}` }
}

/** From the maintained totals: counting the rows would scan the table. */
const allOf = (core: TaskCore) => [...core.totals.runs.byStatus().values()].reduce((sum, count) => sum + count, 0)
