import type { Reads } from '../../../../kernel/plugin.js'
import type { NotWoken } from '../../../../schemas/network/messages.js'
import type { MessageRow } from '../tables.js'

const MOST = 100

/** Addressed sessions that a message did not wake, with reasons; empty if it woke all, or was not meant to wake any. */
export function notWoken(reads: Reads, { seq, kind, workspaceId, channel }: MessageRow): NotWoken[] {
  // Other kinds never wake a session.
  if (kind !== 'say') return []
  return reads.all<NotWoken>(
    `SELECT p.peer_id, d.session_id, d.reason FROM network_delivery d
     JOIN network_peer p ON p.workspace_id = ? AND p.channel = ? AND p.session_id = d.session_id
     WHERE d.seq = ? AND d.reason IN ('not_live', 'depth_exceeded', 'budget_exhausted', 'network_disabled')
     ORDER BY p.peer_id LIMIT +?`,
    [workspaceId, channel, seq, MOST],
  )
}

/** The member `not_woken` of a message's wire form; absent if it would be empty. */
export function notWokenOf(reads: Reads, row: MessageRow | undefined): { readonly not_woken?: NotWoken[] } {
  const sessions = row ? notWoken(reads, row) : []
  return sessions.length > 0 ? { not_woken: sessions } : {}
}
