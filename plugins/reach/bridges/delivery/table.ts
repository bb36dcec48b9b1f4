import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
import type { Migration } from '../../../../kernel/plugin.js'
import type { BridgeAddress, DeliveryState } from '../api.js'

/** Tables of outgoing messages. */
export const deliveryTables: readonly Migration[] = [
  {
    id: '010-deliveries',
    sql: `
CREATE TABLE bridges_delivery (
  id TEXT NOT NULL PRIMARY KEY, bridge_id TEXT NOT NULL, lane TEXT NOT NULL, kind TEXT NOT NULL, key TEXT, source TEXT NOT NULL,
  target TEXT NOT NULL, reply_to TEXT, session_id TEXT, turn_id TEXT, from_sequence INTEGER, event_id TEXT, open INTEGER NOT NULL,
  ttl INTEGER NOT NULL, created_at INTEGER NOT NULL, ended_at INTEGER
) STRICT;
CREATE UNIQUE INDEX bridges_delivery_key ON bridges_delivery (key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX bridges_delivery_turn ON bridges_delivery (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX bridges_delivery_bridge ON bridges_delivery (bridge_id, created_at);
CREATE INDEX bridges_delivery_open ON bridges_delivery (open) WHERE open = 1;
CREATE INDEX bridges_delivery_ended ON bridges_delivery (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE bridges_part (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, delivery_id TEXT NOT NULL, part INTEGER NOT NULL, bridge_id TEXT NOT NULL, lane TEXT NOT NULL,
  state TEXT NOT NULL, event TEXT NOT NULL, text TEXT NOT NULL, last_text TEXT, nonce TEXT NOT NULL, remote_id TEXT, attempts INTEGER NOT NULL,
  attempted_at INTEGER, next_at INTEGER, expires_at INTEGER NOT NULL, reason TEXT, updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX bridges_part_of ON bridges_part (delivery_id, part);
CREATE INDEX bridges_part_active ON bridges_part (lane, seq)
  WHERE state IN ('prepared', 'queued', 'send_attempt_started', 'unknown_after_send');
CREATE INDEX bridges_part_failed ON bridges_part (bridge_id, seq) WHERE state = 'failed';
CREATE INDEX bridges_part_remote ON bridges_part (bridge_id, remote_id) WHERE remote_id IS NOT NULL;`,
  },
]

const { flag, integer, json, text, time } = column

/** Kind of a message: an answer to a person, a posted message, a notice about an event, a question of a session. */
export type DeliveryKind = 'answer' | 'post' | 'notice' | 'question'

/** Messages, each of one or more parts. */
export const deliveries = table('bridges_delivery', {
  id: text(),
  bridge_id: text().as('bridgeId'),
  /** Route of its worker, see `laneOf`. */
  lane: text(),
  kind: text<DeliveryKind>(),
  /** Unique among messages. */
  key: text().optional(),
  /** Author, for people. */
  source: text(),
  target: json<BridgeAddress>(),
  reply_to: text().optional().as('replyTo'),
  session_id: text().optional().as('sessionId'),
  turn_id: text().optional().as('turnId'),
  /** Sequence number in the session's journal from which its turn is read. */
  from_sequence: integer().optional().as('from'),
  /** The inbound event that it answers. */
  event_id: text().optional().as('eventId'),
  /** Whether its turn still runs and more parts may follow. */
  open: flag(),
  /** Milliseconds that a part may wait before it is listed as failed. */
  ttl: integer(),
  created_at: time().as('createdAt'),
  ended_at: time().optional().as('endedAt'),
})
export type Delivery = RowOf<typeof deliveries>

/** Parts of messages: each becomes one message of the platform. */
export const parts = table('bridges_part', {
  seq: integer().generated(),
  delivery_id: text().as('deliveryId'),
  part: integer(),
  bridge_id: text().as('bridgeId'),
  lane: text(),
  state: text<DeliveryState>(),
  event: text<'start' | 'final' | 'error'>(),
  /** Text to send; for a growing answer, the text that was sent first. Empty after the message has ended. */
  text: text(),
  /** Final text, if it differs from the text handed to the adapter. */
  last_text: text().optional().as('lastText'),
  nonce: text(),
  remote_id: text().optional().as('remoteId'),
  attempts: integer(),
  attempted_at: time().optional().as('attemptedAt'),
  /** Earliest time of the next attempt. */
  next_at: time().optional().as('nextAt'),
  expires_at: time().as('expiresAt'),
  reason: text().optional(),
  updated_at: time().as('updatedAt'),
})
export type Part = RowOf<typeof parts>
