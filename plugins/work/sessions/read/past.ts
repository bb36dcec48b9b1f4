import type { SqlValue } from '../../../../kernel/plugin.js'
import type { SessionsContext } from '../context.js'
import type { AgentDay } from '../journal/usage-days.js'

export type { AgentDay } from '../journal/usage-days.js'

/** From the creation of a session to its last activity, in epoch milliseconds. */
export interface SessionSpan {
  readonly id: string
  readonly agentName: string
  readonly from: number
  readonly to: number
}

/** What sessions did on earlier days; a workspace is named by its id, and without one all sessions count. */
export interface SessionPast {
  /** Days for which use is kept. */
  readonly usageDays: number
  /** Use of the days from the first to the last, `YYYY-MM-DD`, by day, agent and currency. */
  usage(from: string, to: string, workspaceId?: string): AgentDay[]
  /** The session with the longest time between its creation and its last activity, of those last active from `since` and before `until`. */
  longest(since: number, until: number, workspaceId?: string): SessionSpan | undefined
}

/** @internal */
export function pastOf({ kernel: { db }, usageDays }: SessionsContext): SessionPast {
  return {
    usageDays: usageDays.keepDays,
    usage: (...asked) => usageDays.byAgent(...asked),
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
