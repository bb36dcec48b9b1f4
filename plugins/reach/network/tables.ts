import { column, type RowOf, table } from '../../../kernel/kit/table.js'
import type { Migration } from '../../../kernel/plugin.js'
import type { FanoutPolicy, SubscriptionMode } from '../../../schemas/network/channels.js'
import type { MessageKind, Surface, WorkState } from '../../../schemas/network/messages.js'

/** Tables of channels, peers, conversations and messages. Further tables are in the subfolders. */
export const migrations: readonly Migration[] = [
  {
    id: '001-conversations',
    sql: `
CREATE TABLE network_channel (
  workspace_id TEXT NOT NULL, channel TEXT NOT NULL, purpose TEXT, fanout_policy TEXT NOT NULL, coordinator TEXT,
  created_by TEXT NOT NULL, created_at INTEGER NOT NULL, messages INTEGER NOT NULL, last_at INTEGER, preview TEXT,
  presence_at INTEGER, PRIMARY KEY (workspace_id, channel)
) STRICT;
CREATE TABLE network_peer (
  workspace_id TEXT NOT NULL, channel TEXT NOT NULL, peer_id TEXT NOT NULL, session_id TEXT, daemon TEXT, name TEXT NOT NULL,
  card TEXT, joined_at INTEGER NOT NULL, left_at INTEGER, PRIMARY KEY (workspace_id, channel, peer_id)
) STRICT;
CREATE INDEX network_peer_session ON network_peer (session_id);
CREATE INDEX network_peer_present ON network_peer (workspace_id, channel) WHERE left_at IS NULL;
CREATE TABLE network_container (
  workspace_id TEXT NOT NULL, channel TEXT NOT NULL, id TEXT NOT NULL, surface TEXT NOT NULL, title TEXT NOT NULL, root_id TEXT,
  opened_by TEXT, opened_session TEXT, session_a TEXT, session_b TEXT, opened_at INTEGER NOT NULL, last_at INTEGER NOT NULL,
  preview TEXT, messages INTEGER NOT NULL, PRIMARY KEY (workspace_id, channel, id)
) STRICT;
CREATE INDEX network_container_recent ON network_container (workspace_id, last_at);
CREATE TABLE network_participant (
  workspace_id TEXT NOT NULL, channel TEXT NOT NULL, container_id TEXT NOT NULL, peer_id TEXT NOT NULL, session_id TEXT,
  PRIMARY KEY (workspace_id, channel, container_id, peer_id)
) STRICT;
CREATE TABLE network_message (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, workspace_id TEXT NOT NULL, channel TEXT NOT NULL, kind TEXT NOT NULL,
  surface TEXT, container_id TEXT, sender TEXT NOT NULL, session_id TEXT, receiver TEXT, work_id TEXT, digest TEXT NOT NULL,
  envelope TEXT NOT NULL, preview TEXT NOT NULL, size INTEGER NOT NULL, at INTEGER NOT NULL, daemon TEXT,
  root_id TEXT NOT NULL, depth INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX network_message_id ON network_message (workspace_id, id);
CREATE INDEX network_message_container ON network_message (workspace_id, channel, container_id, seq);
CREATE INDEX network_message_at ON network_message (at);
CREATE TABLE network_delivery (
  session_id TEXT NOT NULL, seq INTEGER NOT NULL, decision TEXT NOT NULL, reason TEXT, wake_id TEXT, delivered_at INTEGER,
  PRIMARY KEY (session_id, seq)
) STRICT;
CREATE INDEX network_delivery_waiting ON network_delivery (session_id, seq) WHERE delivered_at IS NULL;
CREATE INDEX network_delivery_seq ON network_delivery (seq);
CREATE TABLE network_work (
  workspace_id TEXT NOT NULL, work_id TEXT NOT NULL, channel TEXT NOT NULL, surface TEXT NOT NULL, container_id TEXT NOT NULL,
  initiator TEXT NOT NULL, target TEXT NOT NULL, opened_session TEXT, target_session TEXT, state TEXT NOT NULL,
  opened_at INTEGER NOT NULL, last_at INTEGER NOT NULL, ended_at INTEGER, PRIMARY KEY (workspace_id, work_id)
) STRICT;
CREATE INDEX network_work_container ON network_work (workspace_id, channel, container_id);
CREATE TABLE network_subscription (
  workspace_id TEXT NOT NULL, channel TEXT NOT NULL, session_id TEXT NOT NULL, thread_id TEXT NOT NULL, mode TEXT NOT NULL,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, PRIMARY KEY (workspace_id, channel, session_id, thread_id)
) STRICT;
CREATE INDEX network_subscription_session ON network_subscription (session_id);
CREATE TABLE network_tally (
  workspace_id TEXT NOT NULL, peer_id TEXT NOT NULL, kind TEXT NOT NULL, direction TEXT NOT NULL, n INTEGER NOT NULL,
  bytes INTEGER NOT NULL, PRIMARY KEY (workspace_id, peer_id, kind, direction)
) STRICT;`,
  },
]

const { integer, json, text, time } = column

export const channels = table('network_channel', {
  workspace_id: text().as('workspaceId'),
  channel: text(),
  purpose: text().optional(),
  fanout_policy: text<FanoutPolicy>().as('fanoutPolicy'),
  /** Id of the leading peer. */
  coordinator: text().optional(),
  created_by: text().as('createdBy'),
  created_at: time().as('createdAt'),
  messages: integer(),
  last_at: time().optional().as('lastAt'),
  preview: text().optional(),
  /** Last time that a peer joined or left. */
  presence_at: time().optional().as('presenceAt'),
})
export type ChannelRow = RowOf<typeof channels>

export const peers = table('network_peer', {
  workspace_id: text().as('workspaceId'),
  channel: text(),
  peer_id: text().as('peerId'),
  /** Absent: it belongs to another daemon. */
  session_id: text().optional().as('sessionId'),
  daemon: text().optional(),
  name: text(),
  /** Card that it declared. */
  card: json<unknown>().optional(),
  joined_at: time().as('joinedAt'),
  left_at: time().optional().as('leftAt'),
})
export type PeerRow = RowOf<typeof peers>

/** Threads and direct rooms. */
export const containers = table('network_container', {
  workspace_id: text().as('workspaceId'),
  channel: text(),
  id: text(),
  surface: text<Surface>(),
  title: text(),
  root_id: text().optional().as('rootId'),
  opened_by: text().optional().as('openedBy'),
  opened_session: text().optional().as('openedSession'),
  session_a: text().optional().as('sessionA'),
  session_b: text().optional().as('sessionB'),
  opened_at: time().as('openedAt'),
  last_at: time().as('lastAt'),
  preview: text().optional(),
  messages: integer(),
})
export type ContainerRow = RowOf<typeof containers>

export const messages = table('network_message', {
  /** Position in commit order of all messages. */
  seq: integer().generated(),
  id: text(),
  workspace_id: text().as('workspaceId'),
  channel: text(),
  kind: text<MessageKind>(),
  surface: text<Surface>().optional(),
  container_id: text().optional().as('containerId'),
  sender: text(),
  /** The sending session; absent for a message of another daemon. */
  session_id: text().optional().as('sessionId'),
  receiver: text().optional(),
  work_id: text().optional().as('workId'),
  digest: text(),
  /** JSON. */
  envelope: text(),
  preview: text(),
  size: integer(),
  at: time(),
  /** The daemon it came from. */
  daemon: text().optional(),
  /** First message of the chain of wakes that led to it, and the number of wakes in the chain. */
  root_id: text().as('rootId'),
  depth: integer(),
})
export type MessageRow = RowOf<typeof messages>

/** Whether a message wakes a session. */
export type Decision = 'wake' | 'skip'

/** Outcome of each message for each receiving session. */
export const deliveries = table('network_delivery', {
  session_id: text().as('sessionId'),
  seq: integer(),
  decision: text<Decision>(),
  /** Why it does not wake. */
  reason: text().optional(),
  wake_id: text().optional().as('wakeId'),
  /** When the session received it, by a wake or on request. */
  delivered_at: time().optional().as('deliveredAt'),
  /** Size of the received content; absent: none. */
  bytes: integer().optional(),
})

export const works = table('network_work', {
  workspace_id: text().as('workspaceId'),
  work_id: text().as('workId'),
  channel: text(),
  surface: text<Surface>(),
  container_id: text().as('containerId'),
  initiator: text(),
  target: text(),
  opened_session: text().optional().as('openedSession'),
  target_session: text().optional().as('targetSession'),
  state: text<WorkState>(),
  opened_at: time().as('openedAt'),
  last_at: time().as('lastAt'),
  ended_at: time().optional().as('endedAt'),
})
export type WorkRow = RowOf<typeof works>

export const subscriptions = table('network_subscription', {
  workspace_id: text().as('workspaceId'),
  channel: text(),
  session_id: text().as('sessionId'),
  /** Empty: all of the channel. */
  thread_id: text().as('threadId'),
  mode: text<SubscriptionMode>(),
  created_at: time().as('createdAt'),
  updated_at: time().as('updatedAt'),
})
export type SubscriptionRow = RowOf<typeof subscriptions>
