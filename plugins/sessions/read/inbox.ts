import { iso } from '../../../kernel/plugin.js'
import type { InboxItem } from '../../../schemas/sessions.js'
import type { SessionsContext } from '../context.js'
import type { LiveSession } from '../lifecycle/live-session.js'
import { InboxSources } from '../requests/session-question.js'

/** What waits for a person in all sessions, the oldest first. */
export function inboxOf({ limits, kernel }: SessionsContext, live: readonly LiveSession[]): InboxItem[] {
  const items: InboxItem[] = live.flatMap(({ row, binding }) =>
    (binding.running?.permissions.pending ?? []).map(
      ({ requestId, turnId, kind, title, command, createdAt, expiresAt }) => ({
        session_id: row.id,
        ...(row.name && { session_name: row.name }),
        agent_name: row.agent_name,
        workspace_id: row.workspace_id,
        workspace_path: row.workspace_path,
        interaction_id: requestId,
        turn_id: turnId,
        kind,
        title,
        ...(command !== undefined && { command }),
        created_at: iso(createdAt),
        expires_at: iso(expiresAt ?? createdAt + limits.permissionTimeout),
      }),
    ),
  )
  for (const { entry } of kernel.collect(InboxSources)) items.push(...entry.read())
  return items.sort((a, b) => (a.created_at < b.created_at ? -1 : 1))
}
