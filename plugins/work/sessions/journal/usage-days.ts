import type { Clock, Db, Tx } from '../../../../kernel/plugin.js'
import { providerOf } from '../runtime/selection.js'
import type { SessionRow } from '../table.js'
import type { Usage } from './usage.js'

const DAY_MS = 86_400_000

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

/** What a session used on one day, UTC; `tokens` and `cost` are null where its agent does not tell. */
export interface UsageDay {
  /** `YYYY-MM-DD` */
  readonly day: string
  readonly session_id: string
  readonly workspace_id: string
  readonly agent_name: string
  readonly provider: string
  /** Empty where nobody named one. */
  readonly model: string
  readonly turns: number
  readonly tokens: number | null
  readonly cost: number | null
  readonly currency: string | null
}

/** Use by day: what overviews and budgets count, kept for some days, also of sessions that were removed. */
export class UsageDays {
  /** Days that are already pruned. */
  #pruned = ''

  /** @param keepDays how many days are kept, this one included */
  constructor(
    private readonly db: Db,
    private readonly clock: Pick<Clock, 'now'>,
    private readonly keepDays: number,
  ) {}

  /**
   * Counts one turn in. An agent tells what its conversation has used so far, so what a turn used is the difference to what
   * was told before; a count that became smaller began anew.
   */
  add(t: Tx, row: SessionRow, before: Usage | undefined, after: Usage): void {
    const tokens = difference(before?.tokens, after.tokens)
    const cost = difference(before?.cost?.amount, after.cost?.amount ?? null)
    const day = this.#day(0)
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
    t.run('DELETE FROM sessions_usage_day WHERE day < ?', [this.#day(this.keepDays - 1)])
    this.#pruned = day
  }

  /** From the first to the last day, both included, by day. `sessionId`: of that session alone. */
  between(from: string, to: string, sessionId?: string): UsageDay[] {
    const sql = `SELECT * FROM sessions_usage_day WHERE day >= ?1 AND day <= ?2 AND ifnull(?3, session_id) = session_id
      ORDER BY day, session_id`
    return this.db.all<UsageDay>(sql, [from, to, sessionId ?? null])
  }

  /** Whether sessions of an agent have told of their use; undefined where none had a turn. */
  tells(agent: string, provider: string): { readonly tokens: boolean; readonly cost: boolean } | undefined {
    const [turns, tokens, cost] =
      this.db.row(
        `SELECT count(*), count(tokens), count(CASE WHEN currency = 'USD' THEN cost END) FROM sessions_usage_day
         WHERE agent_name = ? AND provider = ?`,
        [agent, provider],
      ) ?? []
    return Number(turns ?? 0) === 0 ? undefined : { tokens: Number(tokens) > 0, cost: Number(cost) > 0 }
  }

  #day(ago: number): string {
    return new Date(this.clock.now() - ago * DAY_MS).toISOString().slice(0, 10)
  }
}

function difference(before: number | null | undefined, after: number | null): number | null {
  if (after === null) return null
  return before == null || after < before ? after : after - before
}
