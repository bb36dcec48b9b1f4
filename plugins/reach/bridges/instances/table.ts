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

/** State of an instance outside its record. */
export const states = table('bridges_state', {
  instance_id: text().as('id'),
  status: text<BridgeStatus>(),
  /** Whether an instance of a package is enabled; the operator cannot write its record. */
  enabled: flag().optional(),
  /** Reason of a degraded or waiting state. */
  reason: text<NonNullable<StateReport['reason']>>().optional(),
  message: text().optional(),
  /** The status in the latest event; absent for a disabled instance. */
  announced: text<BridgeStatus>().optional(),
  webhook_public_url: text().optional().as('webhookUrl'),
  last_error: text().optional().as('lastError'),
  last_error_at: time().optional().as('lastErrorAt'),
  last_success_at: time().optional().as('lastSuccessAt'),
  /** Time of the latest event. */
  inbound_at: time().optional().as('inboundAt'),
  /** Last time that the platform returned a message id. */
  outbound_at: time().optional().as('outboundAt'),
  auth_failures: integer().as('authFailures'),
  delivery_failures: integer().as('deliveryFailures'),
  /** Dropped deliveries by reason. */
  dropped: json<Readonly<Record<string, number>>>(),
  /** Last time the directory of targets was read. */
  refreshed_at: time().optional().as('refreshedAt'),
  updated_at: time().as('updatedAt'),
})

/** A row of {@link states}. */
export type InstanceState = RowOf<typeof states>

/** Slots with a value in the vault, at `bridges/<instance>/<name>`. */
export const secrets = table('bridges_secret', {
  instance_id: text().as('instanceId'),
  name: text(),
  kind: text(),
  created_at: time().as('createdAt'),
  updated_at: time().as('updatedAt'),
})

/** The directory: rooms and people named by platforms. */
export const targets = table('bridges_target', {
  instance_id: text().as('instanceId'),
  /** `group:#ops`; the key of an address. */
  route: text(),
  display_name: text().as('displayName'),
  /** Normalized name for comparison. */
  normalized: text(),
  target_type: text().as('targetType'),
  qualifier: text().optional(),
  capabilities: json<readonly string[]>(),
  last_seen_at: time().as('lastSeenAt'),
  updated_at: time().as('updatedAt'),
})
