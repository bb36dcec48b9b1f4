import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
import type { Migration } from '../../../../kernel/plugin.js'

const { text, integer, flag, time } = column

/** Whether runs of workspaces and tasks coordinate. */
export const coordinationTables: readonly Migration[] = [
  {
    id: '021-coordination',
    sql: `
CREATE TABLE network_coordination (
  workspace_id TEXT NOT NULL, task_id TEXT NOT NULL, revision INTEGER NOT NULL, enabled INTEGER, updated_at INTEGER NOT NULL,
  updated_by TEXT NOT NULL, dismissed_at INTEGER, dismissed_by TEXT, PRIMARY KEY (workspace_id, task_id)
) STRICT;`,
  },
]

export const coordinations = table('network_coordination', {
  workspace_id: text().as('workspaceId'),
  /** Empty: the workspace as a whole. */
  task_id: text().as('taskId'),
  revision: integer(),
  /** Absent: no decision yet, only a response to an invitation. */
  enabled: flag().optional(),
  updated_at: time().as('updatedAt'),
  updated_by: text().as('updatedBy'),
  /** Absent: the invitation is open. */
  dismissed_at: time().optional().as('dismissedAt'),
  dismissed_by: text().optional().as('dismissedBy'),
})
export type CoordinationRow = RowOf<typeof coordinations>
