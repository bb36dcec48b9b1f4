import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
import type { Migration } from '../../../../kernel/plugin.js'

/** States of a wake. */
export type WakeState = 'reserved' | 'queued' | 'delivered' | 'settled' | 'not_live'

/**
 * Transitions of a wake. `reserved`: it collects messages; `queued`: its prompt was given to the session, once;
 * `delivered`: the turn has begun; `settled`: the turn is over and charged; `not_live`: it woke nothing, and its
 * reservation is returned.
 */
export const TRANSITIONS: { readonly [S in WakeState]: readonly WakeState[] } = {
  reserved: ['queued', 'not_live'],
  queued: ['delivered', 'not_live'],
  delivered: ['settled'],
  settled: [],
  not_live: [],
}

/** Certainty of a charge. A wake without usage keeps its reservation. */
export type UsageState = 'reserved' | 'actual' | 'usage_unavailable' | 'returned'

/** Owner of the budget that a wake is charged to. */
export type OwnerKind = 'session' | 'task_run' | 'loop_run' | 'automation_run'

export const wakeMigrations: readonly Migration[] = [
  {
    id: '010-wakes',
    sql: `
CREATE TABLE network_wake (
  id TEXT PRIMARY KEY NOT NULL, workspace_id TEXT NOT NULL, channel TEXT NOT NULL, session_id TEXT NOT NULL, peer_id TEXT NOT NULL,
  owner_kind TEXT NOT NULL, owner_id TEXT NOT NULL, task_run_id TEXT, root_id TEXT NOT NULL, depth INTEGER NOT NULL,
  state TEXT NOT NULL, reason TEXT, usage_state TEXT NOT NULL, wall_ms INTEGER NOT NULL, input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL, limit_ms INTEGER NOT NULL, reserved_at INTEGER NOT NULL, due_at INTEGER NOT NULL,
  delivered_at INTEGER, settled_at INTEGER, turn_id TEXT, journal_from INTEGER, tokens_before INTEGER
) STRICT;
CREATE UNIQUE INDEX network_wake_gathering ON network_wake (session_id) WHERE state = 'reserved';
CREATE UNIQUE INDEX network_wake_in_flight ON network_wake (session_id) WHERE state IN ('queued', 'delivered');
CREATE INDEX network_wake_owner ON network_wake (owner_kind, owner_id);
CREATE INDEX network_wake_workspace ON network_wake (workspace_id, reserved_at);
CREATE INDEX network_wake_settled ON network_wake (settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX network_delivery_wake ON network_delivery (wake_id) WHERE wake_id IS NOT NULL;
ALTER TABLE network_delivery ADD COLUMN bytes INTEGER;`,
  },
]

const { integer, text, time } = column

/** The ledger of wakes: a row is created on admission, and charged once. */
export const wakes = table('network_wake', {
  id: text(),
  workspace_id: text().as('workspaceId'),
  channel: text(),
  session_id: text().as('sessionId'),
  peer_id: text().as('peerId'),
  owner_kind: text<OwnerKind>().as('ownerKind'),
  owner_id: text().as('ownerId'),
  task_run_id: text().optional().as('taskRunId'),
  /** First message of the chain, and the number of wakes including this one. */
  root_id: text().as('rootId'),
  depth: integer(),
  state: text<WakeState>(),
  /** Why it woke nothing, or why its turn was ended. */
  reason: text().optional(),
  usage_state: text<UsageState>().as('usageState'),
  /** Amounts counted against the budget: reserved, later actual. */
  wall_ms: integer().as('wallMs'),
  input_tokens: integer().as('inputTokens'),
  output_tokens: integer().as('outputTokens'),
  /** Milliseconds after which its turn is ended. */
  limit_ms: integer().as('limitMs'),
  reserved_at: time().as('reservedAt'),
  /** When it stops collecting messages. */
  due_at: time().as('dueAt'),
  delivered_at: time().optional().as('deliveredAt'),
  settled_at: time().optional().as('settledAt'),
  turn_id: text().optional().as('turnId'),
  /** Position in the session's journal from which its turn is read. */
  journal_from: integer().optional().as('journalFrom'),
  /** Tokens of the conversation before its turn, as reported by the agent. */
  tokens_before: integer().optional().as('tokensBefore'),
})
export type WakeRow = RowOf<typeof wakes>
