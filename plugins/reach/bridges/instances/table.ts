import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
import type { Migration } from '../../../../kernel/plugin.js'
import type { BridgeStatus, StateReport } from '../api.js'

/** Tables of instances. */
export const instanceTables: readonly Migration[] = [
  {
    id: '001-state',
    sql: `CREATE TABLE bridges_state (
      instance_id TEXT NOT NULL PRIMARY KEY, status TEXT NOT NULL, enabled INTEGER,
      reason TEXT, message TEXT, announced TEXT, webhook_public_url TEXT,
      last_error TEXT, last_error_at INTEGER, last_success_at INTEGER, inbound_at INTEGER, outbound_at INTEGER,
      auth_failures INTEGER NOT NULL, delivery_failures INTEGER NOT NULL, dropped TEXT NOT NULL,
      refreshed_at INTEGER, updated_at INTEGER NOT NULL
    ) STRICT`,
  },
  {
    id: '002-secrets',
    sql: `CREATE TABLE bridges_secret (
      instance_id TEXT NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
      PRIMARY KEY (instance_id, name)
    ) STRICT`,
  },
  {
    id: '003-targets',
    sql: `CREATE TABLE bridges_target (
      instance_id TEXT NOT NULL, route TEXT NOT NULL, display_name TEXT NOT NULL, normalized TEXT NOT NULL,
      target_type TEXT NOT NULL, qualifier TEXT, capabilities TEXT NOT NULL, last_seen_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
      PRIMARY KEY (instance_id, route)
    ) STRICT;
    CREATE INDEX bridges_target_name ON bridges_target (instance_id, normalized)`,
  },
]

const { flag, integer, json, text, time } = column

/** What is known of an instance beside its record. */
export const states = table('bridges_state', {
  instance_id: text().as('id'),
  status: text<BridgeStatus>(),
  /** Of an instance of a package, whose record the operator does not write: whether it is enabled. */
  enabled: flag().optional(),
  /** Why it is degraded, or waits for a secret. */
  reason: text<NonNullable<StateReport['reason']>>().optional(),
  message: text().optional(),
  /** The status that the latest event told of; an instance that is disabled has none. */
  announced: text<BridgeStatus>().optional(),
  webhook_public_url: text().optional().as('webhookUrl'),
  last_error: text().optional().as('lastError'),
  last_error_at: time().optional().as('lastErrorAt'),
  last_success_at: time().optional().as('lastSuccessAt'),
  /** When the latest event came. */
  inbound_at: time().optional().as('inboundAt'),
  /** When the platform last gave an id to a message. */
  outbound_at: time().optional().as('outboundAt'),
  auth_failures: integer().as('authFailures'),
  delivery_failures: integer().as('deliveryFailures'),
  /** Deliveries that were dropped, by reason. */
  dropped: json<Readonly<Record<string, number>>>(),
  /** When the directory of targets was last read. */
  refreshed_at: time().optional().as('refreshedAt'),
  updated_at: time().as('updatedAt'),
})

/** A row of {@link states}. */
export type InstanceState = RowOf<typeof states>

/** Slots that have a value in the vault, at `bridges/<instance>/<name>`. */
export const secrets = table('bridges_secret', {
  instance_id: text().as('instanceId'),
  name: text(),
  kind: text(),
  created_at: time().as('createdAt'),
  updated_at: time().as('updatedAt'),
})

/** The directory: rooms and persons that platforms have named. */
export const targets = table('bridges_target', {
  instance_id: text().as('instanceId'),
  /** `group:#ops`; the key of an address. */
  route: text(),
  display_name: text().as('displayName'),
  /** The name as it is compared. */
  normalized: text(),
  target_type: text().as('targetType'),
  qualifier: text().optional(),
  capabilities: json<readonly string[]>(),
  last_seen_at: time().as('lastSeenAt'),
  updated_at: time().as('updatedAt'),
})
