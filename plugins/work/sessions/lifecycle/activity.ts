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
      return new Map(rows.map(row => [row.name, toWire(row)]))
    },
  }
}

const toWire = ({ total, active, failed, last, ms }: Row): AgentActivity => ({
  total,
  active,
  failed,
  last_activity_at: iso(last),
  runtime_seconds: Math.max(0, Math.round(ms / 1000)),
})
