import type { Hook } from '../../../../kernel/plugin.js'
import type { SessionsContext } from '../context.js'
import { useOf } from './usage.js'

/** Usage of a conversation so far according to its agent; null where not reported. Cost in US dollars. */
export interface SessionUse {
  readonly tokens: number | null
  readonly cost: number | null
}

/** Usage of tokens and money, for plugins that enforce limits. */
export interface SessionUses {
  of(id: string): Promise<SessionUse>
  /** Whether an agent has reported usage in the days that are kept; undefined: it has had no turn yet. */
  tells(agentName: string, provider: string): { readonly tokens: boolean; readonly cost: boolean } | undefined
  /** An agent reported usage during a turn. */
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
