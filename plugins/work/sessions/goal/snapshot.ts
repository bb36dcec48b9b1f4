import { iso } from '../../../../kernel/plugin.js'
import type { GoalSnapshot } from '../../../../schemas/sessions.js'
import type { SessionsContext } from '../context.js'
import type { SessionRow } from '../table.js'
import { goalOf } from './goal.js'

/** Share of the context window above which a compaction is recommended. */
const NUDGE_RATIO = 0.8

/** The goal of a session as others see it; null for none. */
export async function snapshotOf(context: SessionsContext, row: SessionRow): Promise<GoalSnapshot | null> {
  const goal = goalOf(row)
  if (!goal) return null
  return {
    ...goal,
    bound_session_id: row.id,
    origin_session_id: row.id,
    node_id: 'session',
    contract_summary: `the agent says that it is reached, within ${goal.turn_limit} turns`,
    live: goal.status === 'active' && row.state === 'active',
    context: await contextOf(context, row),
  }
}

/** Use of the model's context window in the agent's last report. */
async function contextOf({ logs }: SessionsContext, row: SessionRow): Promise<GoalSnapshot['context']> {
  const [event] = await logs.use(row.id, log => log.query({ type: 'usage', limit: 1 }, row.usage))
  const { used, size } = (event?.content.usage ?? {}) as { used?: unknown; size?: unknown }
  const isKnown = event !== undefined && Number.isSafeInteger(used) && Number.isSafeInteger(size) && Number(size) > 0
  if (!isKnown) {
    const state = event === undefined && row.state === 'active' ? 'pending' : 'unknown'
    return { state, nudge_ratio: NUDGE_RATIO, ratio: null, reported_at: null, size: null, used: null }
  }
  return {
    state: 'known',
    nudge_ratio: NUDGE_RATIO,
    ratio: Number(used) / Number(size),
    reported_at: iso(event.at),
    size: Number(size),
    used: Number(used),
  }
}
