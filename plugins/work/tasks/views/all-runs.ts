import * as v from 'valibot'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { Paging } from '../../../../kernel/kit/page.js'
import { matching } from '../../../../kernel/kit/table.js'
import { type Actor, KernelErrors } from '../../../../kernel/plugin.js'
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
  const matched = matching(['r.status = ?', query.status], ["r.place IN ('', ?)", own])
  const paged = matching([matched.sql, ...matched.params], ['r.rowid < ?', before])
  const from = 'FROM tasks_run r JOIN tasks_task t ON t.id = r.task_id'
  const rows = core.kernel.db.all<Row>(
    `SELECT r.*, r.rowid AS number, t.title AS task_title ${from} WHERE ${paged.sql} ORDER BY r.rowid DESC LIMIT +?`,
    [...paged.params, limit + 1],
  )
  const total = matched.params.length > 0 ? `SELECT count(*) FROM tasks_run r WHERE ${matched.sql}` : undefined
  const { rows: shown, ...position } = paging.cut(of, rows, limit, ({ number }): [number] => [number])
  return {
    runs: shown.map(row => ({ ...runToWire(row), task_title: row.task_title })),
    page: {
      limit,
      total: total === undefined ? allOf(core) : Number(core.kernel.db.row(total, matched.params)?.[0]),
      ...position,
    },
  }
}

/** From the maintained totals: counting the rows would scan the table. */
const allOf = (core: TaskCore) => [...core.totals.runs.byStatus().values()].reduce((sum, count) => sum + count, 0)
