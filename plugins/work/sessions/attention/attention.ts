import type { AttentionSummaryReply } from '../../../../schemas/sessions.js'
import type { FinishedSession } from '../api.js'
import { holderOf } from '../attach/lease.js'
import type { SessionsContext } from '../context.js'
import type { LiveSession } from '../lifecycle/live-session.js'
import type { SessionChange, SessionRow } from '../table.js'
import { infoOf, isWaiting } from '../wire.js'

/** Whether something ended that no person has seen. */
export type Attention = 'none' | 'finished'
type Happened = 'ended' | 'seen'

/** Transitions of the attention of a session. */
const TRANSITIONS: { readonly [A in Attention]: { readonly [H in Happened]: Attention } } = {
  none: { ended: 'finished', seen: 'none' },
  finished: { ended: 'finished', seen: 'none' },
}

/** The row change after something happened; empty when the attention stays the same. */
export function attentionAfter(row: SessionRow, happened: Happened, now: number): SessionChange {
  const before: Attention = row.unseen_since === null ? 'none' : 'finished'
  const after = TRANSITIONS[before][happened]
  return after === before ? {} : { unseen_since: after === 'finished' ? now : null, attention_changed_at: now }
}

/** The row change at the end of a turn. A person who views or holds the session needs no notice. */
export function attentionOfEnd({ kernel, presence }: SessionsContext, row: SessionRow): SessionChange {
  const now = kernel.clock.now()
  if (row.type !== 'user' || presence.sees(row.id) || holderOf(row, now)) return {}
  return attentionAfter(row, 'ended', now)
}

/** Marks a session as seen. */
export async function markSeen({ kernel, table }: SessionsContext, id: string): Promise<void> {
  const row = table.get(id)
  if (!row || row.unseen_since === null) return
  await kernel.db.tx(t => table.update(t, id, attentionAfter(row, 'seen', kernel.clock.now())))
}

/** Sessions with an unseen end, as {@link SessionsApi.finished} returns them. */
export const finishedSessions = ({ kernel, table }: SessionsContext): FinishedSession[] =>
  kernel.db
    .all<{ id: string; at: number }>(
      `SELECT id, unseen_since AS at FROM sessions_session
       WHERE unseen_since IS NOT NULL AND archived_at IS NULL ORDER BY unseen_since DESC LIMIT 10000`,
    )
    .flatMap(({ id, at }) => {
      const row = table.get(id)
      return row ? [{ session: infoOf(row), at }] : []
    })

/** The number of sessions that wait for a person, and of those with an unseen end. */
export function attentionSummary({ kernel }: SessionsContext, live: readonly LiveSession[]): AttentionSummaryReply {
  const waiting = live.filter(isWaiting)
  const asks = new Set(waiting.map(({ id }) => id))
  const counts = new Map<string, { needs_you: number; finished: number }>()
  const of = (workspaceId: string) => {
    const known = counts.get(workspaceId) ?? { needs_you: 0, finished: 0 }
    counts.set(workspaceId, known)
    return known
  }
  for (const { row } of waiting) of(row.workspace_id).needs_you++
  const sql =
    'SELECT id, workspace_id FROM sessions_session WHERE unseen_since IS NOT NULL AND archived_at IS NULL ORDER BY workspace_id'
  for (const row of kernel.db.all<{ id: string; workspace_id: string }>(sql)) {
    if (!asks.has(row.id)) of(row.workspace_id).finished++
  }
  const all = [...counts.values()]
  return {
    needs_you: all.reduce((sum, { needs_you }) => sum + needs_you, 0),
    finished: all.reduce((sum, { finished }) => sum + finished, 0),
    by_workspace: [...counts].map(([workspace_id, count]) => ({ workspace_id, ...count })),
  }
}
