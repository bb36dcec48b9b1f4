import * as v from 'valibot'
import { Paging } from '../../../kernel/kit/page.js'
import { iso, KernelErrors, type SqlValue } from '../../../kernel/plugin.js'
import type { Inbox, InboxItem, InboxLane, InboxQuery, TaskStatus, Triage } from '../../../schemas/tasks.js'
import type { TaskCore } from '../core.js'
import { PRIORITY, priorityOf } from '../limits.js'
import { given } from '../rows.js'
import { runFacts } from '../runs/run-row.js'
import { summaryToWire } from '../tasks/task-row.js'
import type { Who } from '../who.js'

const DEFAULT_LIMIT = 50
/** In the order in which the inbox shows them. */
const LANES: readonly InboxLane[] = ['my_work', 'approvals', 'failed_runs', 'blocked', 'archived']

interface TriageRow {
  readonly read: number
  readonly dismissed: number
  readonly archived: number
  readonly last_seen_at: number
  readonly updated_at: number
}

/** A task of the inbox as far as totals, order and page need it. */
interface Entry {
  readonly id: string
  readonly status: TaskStatus
  readonly priority: number
  readonly activity: number
  readonly lane: InboxLane
  readonly unread: number
}

/** Tasks that somebody may have to do something about, by their numbers in the table, from the indexes of what can be a reason for it. */
const CANDIDATES = `
  SELECT rowid AS task FROM tasks_task WHERE status = 'blocked'
  UNION SELECT rowid FROM tasks_task WHERE last_run_failed = 1
  UNION SELECT rowid FROM tasks_task WHERE owner_kind = ?1 AND owner_ref = ?2
    AND status NOT IN ('draft', 'completed', 'failed', 'canceled')
  UNION SELECT o.rowid FROM tasks_run r JOIN tasks_task o ON o.id = r.task_id
    WHERE r.claimed_by_kind = ?1 AND r.claimed_by_ref = ?2 AND r.status NOT IN ('completed', 'failed', 'canceled')
  UNION SELECT o.rowid FROM tasks_triage m JOIN tasks_task o ON o.id = m.task_id
    WHERE m.actor_kind = ?1 AND m.actor_ref = ?2 AND m.archived = 1`
const LANE = `CASE
  WHEN ifnull(g.archived, 0) = 1 THEN 'archived'
  WHEN t.status = 'blocked' AND t.approval_policy = 'manual' AND t.approval_state = 'pending' THEN 'approvals'
  WHEN t.last_run_failed = 1 THEN 'failed_runs'
  WHEN t.status = 'blocked' THEN 'blocked'
  ELSE 'my_work' END`
const SEEN = 'ifnull(g.last_seen_at, -1) >= t.last_activity_at'

/** What waits for somebody, and what he made of it. */
export class TaskInbox {
  readonly #paging = new Paging({
    place: v.tuple([v.number(), v.number(), v.number(), v.string()]),
    invalid: () => KernelErrors.invalid_cursor(undefined, { next: 'svc task inbox' }),
  })

  constructor(private readonly core: TaskCore) {}

  /** Marks what has happened until now as read, dismissed or archived. */
  triage(who: Who, id: string, mark: 'read' | 'dismissed' | 'archived'): Promise<Triage> {
    return this.core.write(who, t => {
      const task = this.core.tasks.find(id, t)
      const { kind, ref } = who.by
      const before = this.#triageOf(who, id)
      // What was said of something older does not hold for what has happened since.
      const seen = before !== undefined && before.last_seen_at >= task.last_activity_at
      const marks = {
        read: seen ? before.read : 0,
        dismissed: seen ? before.dismissed : 0,
        archived: before?.archived ?? 0,
      }
      const after = { ...marks, [mark]: 1 }
      t.run(
        `INSERT OR REPLACE INTO tasks_triage
           (task_id, actor_kind, actor_ref, read, dismissed, archived, last_seen_at, updated_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
        [id, kind, ref, after.read, after.dismissed, after.archived, task.last_activity_at, this.core.now()],
      )
      return this.#toWire(who, id, this.core.now(), this.#triageOf(who, id))
    })
  }

  list(who: Who, query: InboxQuery, workspace: string | undefined): Inbox {
    const entries = this.#entries(who, query, workspace)
    const limit = query.limit ?? DEFAULT_LIMIT
    const of = { actor: { kind: 'operator' as const, id: `${who.by.kind}/${who.by.ref}` }, query }
    const after = this.#paging.after(of, query.cursor)
    const from = after === undefined ? 0 : entries.filter(entry => compare(placeOf(entry), after) <= 0).length
    const { rows, ...position } = this.#paging.cut(of, entries.slice(from, from + limit + 1), limit, placeOf)
    const items = rows.map(entry => this.#item(who, entry))
    return {
      groups: LANES.map(lane => {
        const all = entries.filter(entry => entry.lane === lane)
        return {
          lane,
          count: all.length,
          unread_count: all.filter(({ unread }) => unread === 1).length,
          items: items.filter(item => item.lane === lane),
        }
      }),
      facets: {
        statuses: countBy(entries, ({ status }) => status).map(([status, count]) => ({ status, count })),
        priorities: countBy(entries, ({ priority }) => priorityOf(priority)).map(([priority, count]) => ({
          priority,
          count,
        })),
      },
      archived_total: entries.filter(({ lane }) => lane === 'archived').length,
      unread_total: entries.filter(({ unread }) => unread === 1).length,
      page: { ...position, limit, total: entries.length },
    }
  }

  /** All that the filters leave, in order. */
  #entries(who: Who, query: InboxQuery, workspace: string | undefined): Entry[] {
    const { kind, ref } = who.by
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
    const asked = conditions.filter((entry): entry is [string, SqlValue] => entry[1] !== undefined)
    const numbered = asked.map(([sql], n) => sql.replace('?', `?${n + 3}`))
    return this.core.kernel.db.all<Entry>(
      `SELECT t.id, t.status, t.priority, t.last_activity_at AS activity, ${LANE} AS lane,
         CASE WHEN ifnull(g.archived, 0) = 1 OR (${SEEN} AND g.read = 1) THEN 0 ELSE 1 END AS unread
       FROM (${CANDIDATES}) c JOIN tasks_task t ON t.rowid = c.task
       LEFT JOIN tasks_triage g ON g.task_id = t.id AND g.actor_kind = ?1 AND g.actor_ref = ?2
       WHERE NOT (${SEEN} AND ifnull(g.dismissed, 0) = 1 AND ifnull(g.archived, 0) = 0)
         ${numbered.map(sql => `AND ${sql}`).join(' ')}
       ORDER BY unread DESC, activity DESC, t.priority DESC, t.id`,
      [kind, ref, ...asked.map(([, value]) => value)],
    )
  }

  #item(who: Who, { id, lane, activity }: Entry): InboxItem {
    const task = this.core.tasks.find(id)
    const { paused: _p, effective_paused: _e, paused_by_task_id: _b, ...summary } = summaryToWire(task)
    const [run] = this.core.runs.list(id, { limit: 1 })
    const [reason] = task.status === 'blocked' ? this.core.tasks.blockedBy(task) : []
    const why = reason && (reason.reason || `it waits for ${reason.depends_on_task_ids?.join(', ')}`)
    return {
      lane,
      task: summary,
      run: run ? runFacts(run, task.max_attempts) : null,
      triage: this.#toWire(who, id, task.created_at, this.#triageOf(who, id)),
      approval_policy: task.approval_policy,
      approval_state: task.approval_state,
      ...given('blocking_reason', why),
      latest_activity_at: iso(activity),
    }
  }

  #triageOf({ by }: Who, id: string): TriageRow | undefined {
    return this.core.kernel.db.get<TriageRow>(
      'SELECT * FROM tasks_triage WHERE actor_kind = ? AND actor_ref = ? AND task_id = ?',
      [by.kind, by.ref, id],
    )
  }

  #toWire({ by }: Who, id: string, at: number, row: TriageRow | undefined): Triage {
    return {
      task_id: id,
      actor: by,
      read: row?.read === 1,
      dismissed: row?.dismissed === 1,
      archived: row?.archived === 1,
      last_seen_activity_at: row ? iso(row.last_seen_at) : null,
      updated_at: iso(row?.updated_at ?? at),
    }
  }
}

type Place = [unread: number, activity: number, priority: number, id: string]
const placeOf = ({ unread, activity, priority, id }: Entry): Place => [unread, activity, priority, id]

/** Below 0 where `a` comes first. */
function compare([au, aa, ap, ai]: Place, [bu, ba, bp, bi]: Place): number {
  return bu - au || ba - aa || bp - ap || (ai < bi ? -1 : ai > bi ? 1 : 0)
}

function countBy<K extends string>(entries: readonly Entry[], keyOf: (entry: Entry) => K): [K, number][] {
  const counts = new Map<K, number>()
  for (const entry of entries) counts.set(keyOf(entry), (counts.get(keyOf(entry)) ?? 0) + 1)
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1))
}
