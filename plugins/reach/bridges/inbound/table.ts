import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
import type { Migration } from '../../../../kernel/plugin.js'
import type { BridgeAddress } from '../api.js'

/** Tables of inbound events. */
export const inboundTables: readonly Migration[] = [
  {
    id: '020-inbox',
    sql: `
CREATE TABLE bridges_inbox (
  id TEXT NOT NULL PRIMARY KEY, bridge_id TEXT NOT NULL, key TEXT NOT NULL, state TEXT NOT NULL, event TEXT NOT NULL,
  files INTEGER NOT NULL, session_id TEXT, reason TEXT, attempts INTEGER NOT NULL, received_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX bridges_inbox_key ON bridges_inbox (bridge_id, key);
CREATE INDEX bridges_inbox_received ON bridges_inbox (received_at) WHERE state = 'received';
CREATE INDEX bridges_inbox_expires ON bridges_inbox (expires_at);
CREATE TABLE bridges_route (
  key TEXT NOT NULL PRIMARY KEY, bridge_id TEXT NOT NULL, scope TEXT NOT NULL, workspace_id TEXT, peer_id TEXT, group_id TEXT,
  thread_id TEXT, session_id TEXT NOT NULL, agent_name TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  last_activity_at INTEGER NOT NULL
) STRICT;
CREATE INDEX bridges_route_bridge ON bridges_route (bridge_id, last_activity_at);
CREATE INDEX bridges_route_session ON bridges_route (session_id);`,
  },
  {
    id: '021-conversation',
    sql: `
ALTER TABLE bridges_route ADD COLUMN target TEXT;
ALTER TABLE bridges_route ADD COLUMN message_id TEXT;`,
  },
]

const { integer, json, text, time } = column

/** State of an event: received; its prompt is durable in a session; answered; ignored. */
export type EventState = 'received' | 'prompted' | 'answered' | 'ignored'

/** Events of platforms, each once. */
export const inbox = table('bridges_inbox', {
  id: text(),
  bridge_id: text().as('bridgeId'),
  /** Idempotency key of the platform. */
  key: text(),
  state: text<EventState>(),
  /** The event as JSON without its files; empty after it is settled. */
  event: text(),
  /** Number of its files. */
  files: integer(),
  /** The session it prompts. */
  session_id: text().optional().as('sessionId'),
  reason: text().optional(),
  /** Prompts of it that never reached an agent. */
  attempts: integer(),
  received_at: time().as('receivedAt'),
  expires_at: time().as('expiresAt'),
})
export type InboxRow = RowOf<typeof inbox>

/** Conversations that are bound to a session. */
export const routes = table('bridges_route', {
  key: text(),
  bridge_id: text().as('bridgeId'),
  scope: text<'global' | 'workspace'>(),
  workspace_id: text().optional().as('workspaceId'),
  peer_id: text().optional().as('peerId'),
  group_id: text().optional().as('groupId'),
  thread_id: text().optional().as('threadId'),
  session_id: text().as('sessionId'),
  agent_name: text().as('agentName'),
  created_at: time().as('createdAt'),
  updated_at: time().as('updatedAt'),
  last_activity_at: time().as('lastActivityAt'),
  /** Address and id of the newest message; absent for rows from before they were stored. */
  target: json<BridgeAddress>().optional(),
  message_id: text().optional().as('messageId'),
})
export type RouteRow = RowOf<typeof routes>
