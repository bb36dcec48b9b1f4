import * as v from 'valibot'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { Paging } from '../../../../kernel/kit/page.js'
import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
import { iso, KernelErrors, type SqlValue } from '../../../../kernel/plugin.js'
import type {
  Inbox,
  InboxItem,
  InboxLane,
  InboxQuery,
  TaskActor,
  TaskStatus,
  Triage,
} from '../../../../schemas/tasks.js'
import type { TaskCore } from '../core.js'
import { PRIORITY, priorityOf } from '../limits.js'
import { optionalMember } from '../rows.js'
import { runFacts } from '../runs/run-row.js'
import { summaryToWire, type TaskRow } from '../tasks/task-row.js'
import { actorToWire, type Who } from '../who.js'
import { failedPart } from './next-step.js'

const DEFAULT_LIMIT = 50
/** The lanes in display order. */
const LANES: readonly InboxLane[] = ['my_work', 'approvals', 'failed_runs', 'blocked', 'archived']

const { integer, text, time } = column
export const triageTable = table('tasks_triage', {
  task_id: text(),
  actor_kind: text<TaskActor['kind']>(),
  actor_ref: text(),
  read: integer(),
  dismissed: integer(),
  archived: integer(),
  last_seen_at: time(),
  updated_at: time(),
})
type TriageRow = Omit<RowOf<typeof triageTable>, 'task_id' | 'actor_kind' | 'actor_ref'>

/** A task in the inbox with its inbox state for the caller. */
interface Entry extends TaskRow {
  readonly lane: InboxLane
  readonly unread: number
  readonly seen: string | null
}

/** Number of tasks per group. */
type Count = readonly [lane: InboxLane, unread: number, status: TaskStatus, priority: number, count: number]

/**
 * The row ids of tasks that may need action, one index lookup per reason. Without INDEXED BY, SQLite scans all tasks for the
 * failed ones, since the union wants them in rowid order.
 */
const CANDIDATES = `
  SELECT rowid AS task FROM tasks_task WHERE status = 'blocked'
  UNION SELECT rowid FROM tasks_task INDEXED BY tasks_task_failed WHERE last_run_failed = 1
  UNION SELECT rowid FROM tasks_task WHERE owner_kind = ?3 AND owner_ref = ?4
    AND status NOT IN ('draft', 'completed', 'failed', 'canceled')
  UNION SELECT o.rowid FROM tasks_run r JOIN tasks_task o ON o.id = r.task_id
    WHERE r.status IN ('claimed', 'starting', 'running', 'needs_attention') AND r.claimed_by_kind = ?1 AND r.claimed_by_ref = ?2
  UNION SELECT o.rowid FROM tasks_triage m JOIN tasks_task o ON o.id = m.task_id
    WHERE m.actor_kind = ?1 AND m.actor_ref = ?2 AND m.archived = 1`
const LANE = `CASE
  WHEN ifnull(g.archived, 0) = 1 THEN 'archived'
  WHEN t.status = 'blocked' AND t.approval_policy = 'manual' AND t.approval_state = 'pending' THEN 'approvals'
  WHEN t.last_run_failed = 1 THEN 'failed_runs'
  WHEN t.status = 'blocked' THEN 'blocked'
  ELSE 'my_work' END`
const SEEN = 'ifnull(g.last_seen_at, -1) >= t.last_activity_at'
const UNREAD = `CASE WHEN ifnull(g.archived, 0) = 1 OR (${SEEN} AND g.read = 1) THEN 0 ELSE 1 END`

/** The inbox of tasks, per actor. */
export class TaskInbox {
  readonly #paging = new Paging({
    place: v.tuple([v.number(), v.number(), v.number(), v.string()]),
    invalid: () => KernelErrors.invalid_cursor(undefined, { next: command('task inbox') }),
  })

  constructor(private readonly core: TaskCore) {}

  /** Marks the events so far as read, dismissed or archived. */
  triage(who: Who, id: string, mark: 'read' | 'dismissed' | 'archived'): Promise<Triage> {
    return this.core.write(who, t => {
      const task = this.core.tasks.find(id, t)
      const { kind, ref } = who.by
      const before = this.#triageOf(who, id)
      // Marks on older events do not apply to newer ones.
      const isCurrent = before !== undefined && before.last_seen_at >= task.last_activity_at
      const marks = {
        read: isCurrent ? before.read : 0,
        dismissed: isCurrent ? before.dismissed : 0,
        archived: before?.archived ?? 0,
      }
      const now = this.core.now()
      const after = { ...marks, [mark]: 1, last_seen_at: task.last_activity_at, updated_at: now }
      triageTable.replace(t, { task_id: id, actor_kind: kind, actor_ref: ref, ...after })
      return this.#toWire(who, id, now, after)
    })
  }

  list(who: Who, query: InboxQuery, workspace: string | undefined): Inbox {
    const { sql, values } = this.#queryParts(who, query, workspace)
    const limit = query.limit ?? DEFAULT_LIMIT
    const of = { actor: { kind: 'operator' as const, id: `${who.by.kind}/${who.by.ref}` }, query }
    const after = this.#paging.after(of, query.cursor)
    const counts = this.core.kernel.db.rows(
      `SELECT ${LANE} AS lane, ${UNREAD} AS unread, t.status, t.priority, count(*) ${sql} GROUP BY 1, 2, 3, 4`,
      values,
    ) as unknown as Count[]
    const { rows, ...position } = this.#paging.cut(of, this.#page(sql, values, after, limit + 1), limit, positionOf)
    const items = rows.map(entry => this.#item(who, entry))
    const total = (wanted: (count: Count) => boolean) =>
      counts.filter(wanted).reduce((sum, [, , , , count]) => sum + count, 0)
    return {
      groups: LANES.map(lane => ({
        lane,
        count: total(of => of[0] === lane),
        unread_count: total(of => of[0] === lane && of[1] === 1),
        items: items.filter(item => item.lane === lane),
      })),
      facets: {
        statuses: sumsBy(counts, of => of[2]).map(([status, count]) => ({ status, count })),
        priorities: sumsBy(counts, of => priorityOf(of[3])).map(([priority, count]) => ({ priority, count })),
      },
      archived_total: total(of => of[0] === 'archived'),
      unread_total: total(of => of[1] === 1),
      page: { ...position, limit, total: total(() => true) },
    }
  }

  /** The number of tasks in the lanes `approvals` and `failed_runs`, and the newest of them by last activity. */
  waiting(who: Who, workspace: string | undefined, limit: number) {
    const { db } = this.core.kernel
    const { sql, values } = this.#queryParts(who, {}, workspace)
    const lanes = `lane IN ('approvals', 'failed_runs')`
    const counts = new Map(
      db
        .rows(`SELECT ${LANE} AS lane, count(*) ${sql} AND ${lanes} GROUP BY 1`, values)
        .map(([lane, n]) => [lane, Number(n)]),
    )
    const rows = db.all<{ id: string; title: string; at: number; reason: null; lane: InboxLane }>(
      `SELECT t.id, t.title, t.last_activity_at AS at, NULL AS reason, ${LANE} AS lane ${sql} AND ${lanes}
       ORDER BY t.last_activity_at DESC, t.id LIMIT +?${values.length + 1}`,
      [...values, limit],
    )
    return { approvals: counts.get('approvals') ?? 0, failures: counts.get('failed_runs') ?? 0, rows }
  }

  /** The query from FROM on, with all filters; the caller selects `lane` and `unread`. */
  #queryParts(who: Who, query: InboxQuery, workspace: string | undefined) {
    const { kind, ref } = who.by
    // Owners are stored in the wire form of an actor, because requests set them in that form.
    const owner = actorToWire(kind, ref)
    const conditions: [string, SqlValue | undefined][] = [
      ['t.scope = ?', query.scope],
      ['t.workspace_id = ?', workspace],
      ['t.owner_kind = ?', query.owner_kind],
      ['t.owner_ref = ?', query.owner_ref],
      ['t.status = ?', query.status],
      ['t.priority = ?', query.priority && PRIORITY[query.priority]],
      ['lane = ?', query.lane],
      ['unread = ?', query.unread === undefined ? undefined : Number(query.unread)],
      ["instr(lower(t.title || ' ' || ifnull(t.identifier, '')), lower(?)) > 0", query.query],
    ]
    const filters = conditions.filter((entry): entry is [string, SqlValue] => entry[1] !== undefined)
    const numbered = filters.map(([sql], n) => sql.replace('?', `?${n + 5}`))
    const sql = `FROM (${CANDIDATES}) c JOIN tasks_task t ON t.rowid = c.task
       LEFT JOIN tasks_triage g ON g.task_id = t.id AND g.actor_kind = ?1 AND g.actor_ref = ?2
       WHERE NOT (${SEEN} AND ifnull(g.dismissed, 0) = 1 AND ifnull(g.archived, 0) = 0)
         ${numbered.map(sql => `AND ${sql}`).join(' ')}`
    return { sql, values: [kind, ref, owner.kind, owner.ref, ...filters.map(([, value]) => value)] }
  }

  /** The rows after a position. Sorting uses few columns; only the rows of the page are read in full. */
  #page(sql: string, values: readonly SqlValue[], after: Position | undefined, limit: number): Entry[] {
    const [unread, activity, priority, id] = [1, 2, 3, 4].map(n => `?${values.length + n}`)
    const behind = `AND (unread < ${unread} OR unread = ${unread} AND (activity < ${activity} OR activity = ${activity}
      AND (t.priority < ${priority} OR t.priority = ${priority} AND t.id > ${id})))`
    const places = after ?? []
    return this.core.kernel.db.all<Entry>(
      `SELECT t.*, p.lane, p.unread, p.seen FROM (
         SELECT c.task, ${LANE} AS lane, ${UNREAD} AS unread, t.last_activity_at AS activity,
           CASE WHEN g.task_id IS NULL THEN NULL
             ELSE json_array(g.read, g.dismissed, g.archived, g.last_seen_at, g.updated_at) END AS seen
         ${sql} ${after ? behind : ''}
         ORDER BY unread DESC, activity DESC, t.priority DESC, t.id LIMIT +?${values.length + places.length + 1}
       ) p JOIN tasks_task t ON t.rowid = p.task
       ORDER BY p.unread DESC, t.last_activity_at DESC, t.priority DESC, t.id`,
      [...values, ...places, limit],
    )
  }

  #item(who: Who, entry: Entry): InboxItem {
    const { lane, unread: _, seen, ...task } = entry
    const { paused: _p, effective_paused: _e, paused_by_task_id: _b, ...summary } = summaryToWire(task)
    const runs = this.core.runs.all(task.id)
    const run = failedPart(runs) ?? runs[0]
    const [reason] = task.status === 'blocked' ? this.core.tasks.blockedBy(task) : []
    const why = reason && (reason.reason || `waiting for ${reason.depends_on_task_ids?.join(', ')}`)
    return {
      lane,
      task: summary,
      run: run ? runFacts(run, task.max_attempts) : null,
      triage: this.#toWire(who, task.id, task.created_at, seen === null ? undefined : triageFrom(seen)),
      approval_policy: task.approval_policy,
      approval_state: task.approval_state,
      ...optionalMember('blocking_reason', why),
      latest_activity_at: iso(task.last_activity_at),
    }
  }

  #triageOf({ by }: Who, id: string): TriageRow | undefined {
    return triageTable.get(this.core.kernel.db, { actor_kind: by.kind, actor_ref: by.ref, task_id: id })
  }

  #toWire({ by }: Who, id: string, at: number, row: TriageRow | undefined): Triage {
    return {
      task_id: id,
      actor: actorToWire(by.kind, by.ref),
      read: row?.read === 1,
      dismissed: row?.dismissed === 1,
      archived: row?.archived === 1,
      last_seen_activity_at: row ? iso(row.last_seen_at) : null,
      updated_at: iso(row?.updated_at ?? at),
    }
  }
}

type Position = [unread: number, activity: number, priority: number, id: string]
const positionOf = ({ unread, last_activity_at: activity, priority, id }: Entry): Position => [
  unread,
  activity,
  priority,
  id,
]

function triageFrom(json: string): TriageRow {
  const [read, dismissed, archived, last_seen_at, updated_at] = JSON.parse(json)
  return { read, dismissed, archived, last_seen_at, updated_at }
}

function sumsBy<K extends string>(counts: readonly Count[], keyOf: (count: Count) => K): [K, number][] {
  const sums = new Map<K, number>()
  for (const count of counts) sums.set(keyOf(count), (sums.get(keyOf(count)) ?? 0) + count[4])
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1))
}
