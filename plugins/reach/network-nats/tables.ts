import { column, type RowOf, table } from '../../../kernel/kit/table.js'
import type { Migration } from '../../../kernel/plugin.js'
import { OFFER_LEASES, OFFER_TABLES } from './offers/table.js'

export const migrations: readonly Migration[] = [
  {
    id: '001-remote',
    sql: `
CREATE TABLE network_nats_peer (
  name TEXT PRIMARY KEY, public_key TEXT NOT NULL UNIQUE, fingerprint TEXT NOT NULL UNIQUE, daemon TEXT NOT NULL UNIQUE,
  added_at INTEGER NOT NULL, revoked_at INTEGER, seen_at INTEGER, skew_ms INTEGER
) STRICT;
CREATE TABLE network_nats_share (
  channel TEXT PRIMARY KEY, workspace_id TEXT NOT NULL, shared_at INTEGER NOT NULL, cursor INTEGER NOT NULL, attempt INTEGER NOT NULL,
  incarnation TEXT, acked INTEGER NOT NULL, received INTEGER NOT NULL, shown_peers TEXT
) STRICT;
CREATE INDEX network_nats_share_workspace ON network_nats_share (workspace_id);
CREATE TABLE network_nats_mark (
  channel TEXT NOT NULL, seq INTEGER NOT NULL, stream_seq INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (channel, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE network_nats_seen (
  daemon TEXT NOT NULL, channel TEXT NOT NULL, id TEXT NOT NULL, expires_at INTEGER NOT NULL, PRIMARY KEY (daemon, channel, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX network_nats_seen_expires ON network_nats_seen (expires_at);
CREATE TABLE network_nats_refusal (
  peer TEXT NOT NULL, reason TEXT NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL, message TEXT NOT NULL, channel TEXT NOT NULL,
  PRIMARY KEY (peer, reason)
) STRICT;`,
  },
  { id: '002-offers', sql: OFFER_TABLES },
  { id: '003-offer-leases', sql: OFFER_LEASES },
]

const { integer, text, time } = column

/** Daemons with pinned keys. */
export const peers = table('network_nats_peer', {
  name: text(),
  public_key: text().as('publicKey'),
  fingerprint: text(),
  daemon: text(),
  added_at: time().as('addedAt'),
  revoked_at: time().optional().as('revokedAt'),
  /** Last contact. */
  seen_at: time().optional().as('seenAt'),
  /** The peer's clock minus this daemon's clock. */
  skew_ms: integer().optional().as('skewMs'),
})
export type PeerRow = RowOf<typeof peers>

/** Channels shared with other daemons. */
export const shares = table('network_nats_share', {
  channel: text(),
  workspace_id: text().as('workspaceId'),
  shared_at: time().as('sharedAt'),
  /** Position in commit order up to which everything is published. */
  cursor: integer(),
  /** Number of republications after a lost stream. */
  attempt: integer(),
  /** Creation time of the stream that `acked` and `received` refer to. */
  incarnation: text().optional(),
  /** Newest stream sequence that acknowledged an own message. */
  acked: integer(),
  /** Sequence up to which everything is received. */
  received: integer(),
  /** Last announced peers. */
  shown_peers: text().optional().as('shownPeers'),
})
export type ShareRow = RowOf<typeof shares>

/** Stream positions of own messages, taken every few minutes: starting points for republication after a loss. */
export const marks = table('network_nats_mark', {
  channel: text(),
  /** Cursor before the message. */
  seq: integer(),
  stream_seq: integer().as('streamSeq'),
  at: time(),
})

/** Ids of received messages until their expiry, to detect duplicates. */
export const receivedMessages = table('network_nats_seen', {
  daemon: text(),
  channel: text(),
  id: text(),
  expires_at: time().as('expiresAt'),
})

/** Refusals by daemon and reason. */
export const refusals = table('network_nats_refusal', {
  peer: text(),
  reason: text(),
  n: integer(),
  at: time(),
  message: text(),
  channel: text(),
})
