import { type Clock, type Db, iso } from '../../../../kernel/plugin.js'
import type { AgentActivity } from '../../../../schemas/agents.js'
import type { ActivitySource } from '../../../agents/agents/api.js'

type Row = { name: string; total: number; active: number; failed: number; last: number; ms: number }

/** Past and current activity of the agents of a workspace, counted over its sessions. */
export function activityOf(db: Pick<Db, 'all'>, clock: Clock): ActivitySource {
  return {
    active(workspaceId) {
      const sql =
        "SELECT DISTINCT agent_name AS name FROM sessions_session WHERE workspace_id = ? AND state <> 'stopped'"
      return new Set(db.all<{ name: string }>(sql, [workspaceId]).map(row => row.name))
    },
    counts(workspaceId, names) {
      if (names.length === 0) return new Map()
      const rows = db.all<Row>(
        `SELECT agent_name AS name, count(*) AS total, sum(state <> 'stopped') AS active,
           sum(failure_kind IS NOT NULL) AS failed, max(last_activity_at) AS last,
           sum((CASE state WHEN 'stopped' THEN updated_at ELSE ? END) - created_at) AS ms
         FROM sessions_session WHERE workspace_id = ? AND agent_name IN (${names.map(() => '?').join(', ')})
         GROUP BY agent_name`,
        [clock.now(), workspaceId, ...names],
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
    },
  }
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
