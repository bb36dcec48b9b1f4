import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
import type { Migration } from '../../../../kernel/plugin.js'
import type { LiveParticipation } from '../../../../schemas/network.js'
import type { ParticipationOwner } from '../../../work/sessions/api.js'

const { text, json, time } = column

/** Executions that take part in channels. */
export const participationTables: readonly Migration[] = [
  {
    id: '020-participation',
    sql: `
CREATE TABLE network_participation (
  owner_kind TEXT NOT NULL, owner_id TEXT NOT NULL, workspace_id TEXT NOT NULL, channel TEXT NOT NULL, session_id TEXT,
  participation TEXT NOT NULL, resolved_at INTEGER NOT NULL, PRIMARY KEY (owner_kind, owner_id)
) STRICT;
CREATE INDEX network_participation_session ON network_participation (session_id, channel);
CREATE INDEX network_participation_workspace ON network_participation (workspace_id);`,
  },
]

export const participations = table('network_participation', {
  owner_kind: text<ParticipationOwner['kind']>().as('ownerKind'),
  owner_id: text().as('ownerId'),
  workspace_id: text().as('workspaceId'),
  channel: text(),
  /** The session that works on it. Absent until there is one. */
  session_id: text().optional().as('sessionId'),
  /** The decision. Never changes. */
  participation: json<LiveParticipation>(),
  resolved_at: time().as('resolvedAt'),
})
export type ParticipationRow = RowOf<typeof participations>
