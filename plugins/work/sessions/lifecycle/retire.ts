import type { SessionsContext } from '../context.js'
import type { SessionRow } from '../row.js'

/** Forks by their origin, and sessions that others started, for {@link referenceTo}. */
export const REFERENCE_INDEXES = `
CREATE INDEX sessions_session_forked ON sessions_session (forked_from) WHERE forked_from IS NOT NULL;
CREATE INDEX sessions_session_lineage ON sessions_session (id) WHERE lineage IS NOT NULL;`

/** Why a session is not removed together with the run that made it. */
export type Kept =
  /** It became a conversation of its own, or a person put it into the archive: it stays. */
  | 'used'
  /** Something refers to it now: it may go later. */
  | 'referred'

/**
 * Why a session stays whose run was removed; undefined: nothing needs it.
 * @param endedAt when the run ended, which made the session and stopped it; epoch milliseconds
 */
export function keptBy({ kernel, table }: SessionsContext, row: SessionRow, endedAt: number): Kept | undefined {
  if (row.archived_at !== null || row.last_activity_at > endedAt) return 'used'
  const isAttached = row.attached_to !== null && Number(row.attach_expires_at) > kernel.clock.now()
  if (row.state !== 'stopped' || isAttached || row.worktree_id !== null) return 'referred'
  return table.isOrigin(row.id) ? 'referred' : undefined
}
