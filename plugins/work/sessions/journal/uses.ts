import type { Hook } from '../../../../kernel/plugin.js'
import type { SessionsContext } from '../context.js'
import { useOf } from './usage.js'

/** What a conversation has used so far, as its agent tells; null where it does not. Money in US dollars. */
export interface SessionUse {
  readonly tokens: number | null
  readonly cost: number | null
}

/** Use of tokens and money, for whoever holds agents to limits. */
export interface SessionUses {
  of(id: string): Promise<SessionUse>
  /** Whether an agent has told of its use in the days that are kept; undefined: it has had no turn yet. */
  tells(agentName: string, provider: string): { readonly tokens: boolean; readonly cost: boolean } | undefined
  /** An agent told of its use, in the middle of a turn. */
  readonly updated: Hook<(sessionId: string, use: SessionUse) => unknown>
}

/** @internal */
export const usesOf = (context: SessionsContext, updated: SessionUses['updated']): SessionUses => ({
  of: async id => {
    const row = context.table.get(id)
    return row
      ? useOf((await context.logs.use(id, log => log.digested(row.usage))).usage)
      : { tokens: null, cost: null }
  },
  tells: (agent, provider) => context.usageDays.tells(agent, provider),
  updated,
})
