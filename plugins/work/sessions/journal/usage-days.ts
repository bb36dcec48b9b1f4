import type { Clock, Db, SqlValue, Tx } from '../../../../kernel/plugin.js'
import { providerOf } from '../runtime/selection.js'
import type { SessionRow } from '../table.js'
import type { LocalTime } from './local-time.js'
import type { Usage } from './usage.js'

export const USAGE_DAY_TABLE = `
CREATE TABLE sessions_usage_day (
  day TEXT NOT NULL,
  session_id TEXT NOT NULL,
  workspace_id TEXT NOT NULL,
  agent_name TEXT NOT NULL,
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  turns INTEGER NOT NULL,
  tokens INTEGER,
  cost REAL,
  currency TEXT,
  PRIMARY KEY (day, session_id)
) STRICT;`

/** Usage of a session on one day of the daemon's time zone; `tokens` and `cost` are null where its agent does not report them. */
export interface UsageDay {
  /** `YYYY-MM-DD` */
  readonly day: string
  readonly session_id: string
  readonly workspace_id: string
  readonly agent_name: string
  readonly provider: string
  /** Empty when no model was chosen. */
  readonly model: string
  readonly turns: number
  readonly tokens: number | null
  readonly cost: number | null
  readonly currency: string | null
}

/** Usage of an agent's sessions on one day, by currency; `tokens` and `cost` are null when no session reported them. */
export interface AgentDay extends Pick<UsageDay, 'day' | 'agent_name' | 'turns' | 'tokens' | 'cost' | 'currency'> {
  /** Sessions with known tokens, and those of them with a known cost. */
  readonly told: number
  readonly priced: number
}

/** Usage by day for overviews and budgets, kept for a limited number of days, also for removed sessions. */
export class UsageDays {
  /** The last day for which old rows were pruned. */
  #pruned = ''

  /** @param keepDays number of days kept, including the current one */
  constructor(
    private readonly db: Db,
    private readonly clock: Pick<Clock, 'now'>,
    readonly keepDays: number,
    private readonly time: LocalTime,
  ) {}

  /**
   * Adds the usage of one turn. Agents report the total of their conversation, so a turn used the difference to the last report; a
   * smaller total means that the agent started counting again.
   */
  add(t: Tx, row: SessionRow, before: Usage | undefined, after: Usage): void {
    const tokens = difference(before?.tokens, after.tokens)
    const cost = difference(before?.cost?.amount, after.cost?.amount ?? null)
    const now = this.clock.now()
    const day = this.time.day(now)
    t.run(
      `INSERT INTO sessions_usage_day
         (day, session_id, workspace_id, agent_name, provider, model, turns, tokens, cost, currency)
       VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?, ?)
       ON CONFLICT (day, session_id) DO UPDATE SET
         turns = turns + 1,
         tokens = CASE WHEN excluded.tokens IS NULL THEN tokens ELSE ifnull(tokens, 0) + excluded.tokens END,
         cost = CASE WHEN excluded.cost IS NULL THEN cost ELSE ifnull(cost, 0) + excluded.cost END,
         currency = ifnull(excluded.currency, currency)`,
      [
        day,
        row.id,
        row.workspace_id,
        row.agent_name,
        providerOf(row),
        row.model,
        tokens,
        cost,
        after.cost?.currency ?? null,
      ],
    )
    if (this.#pruned === day) return
    t.run('DELETE FROM sessions_usage_day WHERE day < ?', [this.time.daysTo(now, this.keepDays)[0] ?? day])
    this.#pruned = day
  }

  /** Usage between two days, both included, by day. `sessionId`: of that session only. */
  between(from: string, to: string, sessionId?: string): UsageDay[] {
    const sql = `SELECT * FROM sessions_usage_day WHERE day >= ?1 AND day <= ?2 AND ifnull(?3, session_id) = session_id
      ORDER BY day, session_id`
    return this.db.all<UsageDay>(sql, [from, to, sessionId ?? null])
  }

  /** Usage by day, agent and currency, of all sessions or those of a workspace. */
  byAgent(from: string, to: string, workspaceId?: string): AgentDay[] {
    const values: SqlValue[] = workspaceId === undefined ? [from, to] : [from, to, workspaceId]
    return this.db.all<AgentDay>(
      `SELECT day, agent_name, currency, sum(turns) AS turns, sum(tokens) AS tokens, sum(cost) AS cost,
         count(tokens) AS told, count(tokens + cost) AS priced
       FROM sessions_usage_day WHERE day >= ? AND day <= ?${workspaceId === undefined ? '' : ' AND workspace_id = ?'}
       GROUP BY day, agent_name, currency ORDER BY day, agent_name`,
      values,
    )
  }

  /** Whether sessions of an agent have reported usage; undefined when none had a turn. */
  tells(agent: string, provider: string): { readonly tokens: boolean; readonly cost: boolean } | undefined {
    const [turns, tokens, cost] =
      this.db.row(
        `SELECT count(*), count(tokens), count(CASE WHEN currency = 'USD' THEN cost END) FROM sessions_usage_day
         WHERE agent_name = ? AND provider = ?`,
        [agent, provider],
      ) ?? []
    return Number(turns ?? 0) === 0 ? undefined : { tokens: Number(tokens) > 0, cost: Number(cost) > 0 }
  }
}

function difference(before: number | null | undefined, after: number | null): number | null {
  if (after === null) return null
  return before == null || after < before ? after : after - before
}
