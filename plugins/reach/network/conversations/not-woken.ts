import type { Reads } from '../../../../kernel/plugin.js'
import type { NotWoken } from '../../../../schemas/network/messages.js'
import type { MessageRow } from '../tables.js'

const MOST = 100

/** Sessions that a message was for and that it did not wake, and why; empty where it woke all, or was to wake none. */
export function notWoken(reads: Reads, { seq, kind, workspaceId, channel }: MessageRow): NotWoken[] {
  // No other kind is to wake a session.
  if (kind !== 'say') return []
  return reads.all<NotWoken>(
    `SELECT p.peer_id, d.session_id, d.reason FROM network_delivery d
     JOIN network_peer p ON p.workspace_id = ? AND p.channel = ? AND p.session_id = d.session_id
     WHERE d.seq = ? AND d.reason IN ('not_live', 'depth_exceeded', 'budget_exhausted', 'network_disabled')
     ORDER BY p.peer_id LIMIT +?`,
    [workspaceId, channel, seq, MOST],
  )
}

/** The same as a member of what tells of the message; none where there is nothing to tell. */
export function notWokenOf(reads: Reads, row: MessageRow | undefined): { readonly not_woken?: NotWoken[] } {
  const sessions = row ? notWoken(reads, row) : []
  return sessions.length > 0 ? { not_woken: sessions } : {}
}
