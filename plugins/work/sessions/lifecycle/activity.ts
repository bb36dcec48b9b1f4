import { type Clock, type Db, iso } from '../../../../kernel/plugin.js'
import type { AgentActivity } from '../../../../schemas/agents.js'
import type { ActivitySource } from '../../../agents/agents/api.js'

type Row = { name: string; total: number; active: number; failed: number; last: number; ms: number }
type Counts = ReadonlyMap<string, AgentActivity>

/** Most results of one kind that are kept. */
const MOST_KEPT = 64

/**
 * Past and current activity of the agents of a workspace, counted over its sessions. A result is kept until the next transaction;
 * counts of an active session are not, because its time goes on.
 */
export function activityOf(db: Pick<Db, 'all' | 'transactions'>, clock: Clock): ActivitySource {
  const [active, counts] = [new Kept<ReadonlySet<string>>(db), new Kept<Counts>(db)]
  return {
    active: workspaceId =>
      active.get(workspaceId, () => {
        const sql =
          "SELECT DISTINCT agent_name AS name FROM sessions_session WHERE workspace_id = ? AND state <> 'stopped'"
        return new Set(db.all<{ name: string }>(sql, [workspaceId]).map(row => row.name))
      }),
    counts: (workspaceId, names) =>
      counts.get(
        [workspaceId, ...names].join(' '),
        () => countsOf(db, clock.now(), workspaceId, names),
        made => ![...made.values()].some(one => one.active > 0),
      ),
  }
}

/** Results of reads by key, kept until a transaction begins. */
class Kept<T> {
  readonly #results = new Map<string, T>()
  #transactions = -1

  constructor(private readonly db: Pick<Db, 'transactions'>) {}

  get(key: string, read: () => T, lasts: (result: T) => boolean = () => true): T {
    const { transactions } = this.db
    if (transactions !== this.#transactions || this.#results.size >= MOST_KEPT) this.#results.clear()
    this.#transactions = transactions
    const result = this.#results.get(key) ?? read()
    if (lasts(result)) this.#results.set(key, result)
    return result
  }
}

function countsOf(db: Pick<Db, 'all'>, now: number, workspaceId: string, names: readonly string[]): Counts {
  if (names.length === 0) return new Map()
  const rows = db.all<Row>(
    `SELECT agent_name AS name, count(*) AS total, sum(state <> 'stopped') AS active,
       sum(failure_kind IS NOT NULL) AS failed, max(last_activity_at) AS last,
       sum((CASE state WHEN 'stopped' THEN updated_at ELSE ? END) - created_at) AS ms
     FROM sessions_session WHERE workspace_id = ? AND agent_name IN (${names.map(() => '?').join(', ')})
     GROUP BY agent_name`,
    [now, workspaceId, ...names],
  )
  const archived = db.all<Row>(
    `SELECT agent_name AS name, sum(sessions) AS total, 0 AS active, sum(failed) AS failed, max(newest_activity_at) AS last,
       sum(runtime_ms) AS ms
     FROM sessions_archived_part WHERE workspace_id = ? AND agent_name IN (${names.map(() => '?').join(', ')})
     GROUP BY agent_name`,
    [workspaceId, ...names],
  )
  for (const old of archived) {
    const at = rows.findIndex(({ name }) => name === old.name)
    if (at < 0) rows.push(old)
    else rows[at] = sumOf(rows[at] ?? old, old)
  }
  return new Map(rows.map(row => [row.name, toWire(row)]))
}

const sumOf = (a: Row, b: Row): Row => ({
  ...{ name: a.name, total: a.total + b.total, active: a.active + b.active, failed: a.failed + b.failed },
  ...{ last: Math.max(a.last, b.last), ms: a.ms + b.ms },
})

const toWire = ({ total, active, failed, last, ms }: Row): AgentActivity => ({
  total,
  active,
  failed,
  last_activity_at: iso(last),
  runtime_seconds: Math.max(0, Math.round(ms / 1000)),
})
