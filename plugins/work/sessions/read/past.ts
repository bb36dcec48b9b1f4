import type { SqlValue } from '../../../../kernel/plugin.js'
import type { SessionsContext } from '../context.js'
import type { AgentDay } from '../journal/usage-days.js'

export type { AgentDay } from '../journal/usage-days.js'

/** The time between the creation and the last activity of a session, in epoch milliseconds. */
export interface SessionSpan {
  readonly id: string
  readonly agentName: string
  readonly from: number
  readonly to: number
}

/** Activity of sessions on earlier days, of one workspace by its ID, or of all sessions. */
export interface SessionPast {
  /** Days for which usage is kept. */
  readonly usageDays: number
  /** Usage between two days, `YYYY-MM-DD`, both included, by day, agent and currency. */
  usage(from: string, to: string, workspaceId?: string): AgentDay[]
  /** The session with the longest span, of those whose last activity is in the range `since` to `until` (exclusive). */
  longest(since: number, until: number, workspaceId?: string): SessionSpan | undefined
}

/** @internal */
export function pastOf({ kernel: { db }, usageDays }: SessionsContext): SessionPast {
  return {
    usageDays: usageDays.keepDays,
    usage: (...args) => usageDays.byAgent(...args),
    longest: (since, until, workspaceId) => {
      const values: SqlValue[] = [since, until, ...(workspaceId === undefined ? [] : [workspaceId])]
      return db.get<SessionSpan>(
        `SELECT id, agent_name AS agentName, created_at AS "from", last_activity_at AS "to" FROM sessions_session
         WHERE last_activity_at >= ? AND last_activity_at < ?${workspaceId === undefined ? '' : ' AND workspace_id = ?'}
         ORDER BY last_activity_at - created_at DESC, id LIMIT 1`,
        values,
      )
    },
  }
}
