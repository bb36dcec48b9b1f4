import type { SessionsContext } from '../context.js'
import type { SessionRow } from '../row.js'
import { mayRetry } from '../states.js'

/** Forks by their origin, and sessions that others started, for {@link referenceTo}. */
export const REFERENCE_INDEXES = `
CREATE INDEX sessions_session_forked ON sessions_session (forked_from) WHERE forked_from IS NOT NULL;
CREATE INDEX sessions_session_lineage ON sessions_session (id) WHERE lineage IS NOT NULL;`

/** Reason for which a session is not removed together with its run. */
export type Kept =
  /** The session continued as a conversation, or a person archived it: it stays. */
  | 'used'
  /** Something refers to it now: it may be removed later. */
  | 'referred'

/**
 * Reason for which the session of a removed run stays; undefined: nothing needs it.
 * @param endedAt end of the run, in epoch milliseconds
 */
export function keptBy({ kernel, table }: SessionsContext, row: SessionRow, endedAt: number): Kept | undefined {
  if (row.archived_at !== null || row.last_activity_at > endedAt) return 'used'
  const isAttached = row.attached_to !== null && Number(row.attach_expires_at) > kernel.clock.now()
  if (row.state !== 'stopped' || isAttached || row.worktree_id !== null) return 'referred'
  return table.isOrigin(row.id) ? 'referred' : undefined
}

/** Whether a stopped session stays in the catalog although it is old. @param isRetirable asks the plugins that refer to sessions */
export async function staysInCatalog(
  context: SessionsContext,
  row: SessionRow,
  isRetirable: () => Promise<boolean>,
): Promise<boolean> {
  const isAttached = row.attached_to !== null && Number(row.attach_expires_at) > context.kernel.clock.now()
  if (isAttached || row.worktree_id !== null || context.table.isOrigin(row.id)) return true
  // A message in one of its channels would start it again.
  const isPeer = row.participation !== null && JSON.parse(row.participation).mode === 'live' && mayRetry(row)
  return isPeer || !(await isRetirable())
}
