import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
import type { Migration } from '../../../../kernel/plugin.js'

/** Message order per channel, and tasks created from messages. */
export const agentMigrations: readonly Migration[] = [
  {
    id: '020-agent',
    sql: `
CREATE INDEX network_message_channel ON network_message (workspace_id, channel, seq);
CREATE TABLE network_task_link (
  workspace_id TEXT NOT NULL, origin_message_id TEXT NOT NULL, channel TEXT NOT NULL, thread_id TEXT NOT NULL, task_id TEXT NOT NULL,
  digest TEXT NOT NULL, source_message_ids TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, origin_message_id)
) STRICT;
CREATE INDEX network_task_link_thread ON network_task_link (workspace_id, channel, thread_id);`,
  },
]

const { json, text, time } = column

/** Tasks created from thread messages. */
export const taskLinks = table('network_task_link', {
  workspace_id: text().as('workspaceId'),
  origin_message_id: text().as('originMessageId'),
  channel: text(),
  thread_id: text().as('threadId'),
  task_id: text().as('taskId'),
  /** Digest of the source messages. */
  digest: text(),
  source_message_ids: json<readonly string[]>().as('sourceMessageIds'),
  created_at: time().as('createdAt'),
  updated_at: time().as('updatedAt'),
})
export type TaskLinkRow = RowOf<typeof taskLinks>
