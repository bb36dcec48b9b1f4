import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
import type { Tx } from '../../../../kernel/plugin.js'
import type { OfferState } from './states.js'

export const OFFER_TABLES = `
CREATE TABLE network_nats_given (
  id TEXT PRIMARY KEY NOT NULL, task_id TEXT NOT NULL, run_id TEXT, title TEXT NOT NULL, brief TEXT NOT NULL, state TEXT NOT NULL,
  attempt INTEGER NOT NULL, offered_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, published TEXT, daemon TEXT, peer TEXT,
  receipts INTEGER NOT NULL, outcome TEXT, error TEXT, ended_at INTEGER
) STRICT;
CREATE UNIQUE INDEX network_nats_given_open ON network_nats_given (task_id) WHERE ended_at IS NULL;
CREATE INDEX network_nats_given_ended ON network_nats_given (ended_at);
CREATE TABLE network_nats_taken (
  daemon TEXT NOT NULL, id TEXT NOT NULL, attempt INTEGER NOT NULL, peer TEXT NOT NULL, title TEXT NOT NULL, brief TEXT NOT NULL,
  state TEXT NOT NULL, offered_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, receipts INTEGER NOT NULL, lease_ms INTEGER,
  agent TEXT NOT NULL, workspace_id TEXT NOT NULL, task_id TEXT, run_id TEXT, outcome TEXT, error TEXT, ended_at INTEGER,
  told_at INTEGER, PRIMARY KEY (daemon, id, attempt)
) STRICT;
CREATE INDEX network_nats_taken_untold ON network_nats_taken (offered_at) WHERE told_at IS NULL;
CREATE INDEX network_nats_taken_told ON network_nats_taken (told_at);`

export const OFFER_LEASES = 'ALTER TABLE network_nats_taken ADD COLUMN held_until INTEGER'

/** A worker's result for an offer. */
export type Result =
  | { readonly status: 'completed'; readonly result: unknown }
  | { readonly status: 'failed'; readonly error: string }

const { integer, json, text, time } = column

/** Offers of this daemon to others. */
export const givenOffers = table('network_nats_given', {
  id: text(),
  task_id: text().as('taskId'),
  /** Absent: the daemon was killed before it queued the run. */
  run_id: text().optional().as('runId'),
  title: text(),
  brief: text(),
  state: text<OfferState>(),
  attempt: integer(),
  offered_at: time().as('offeredAt'),
  /** Latest start of an attempt. */
  expires_at: time().as('expiresAt'),
  /** Creation time of the stream that contains this attempt; absent: not published yet. */
  published: text().optional(),
  /** The daemon that holds the attempt, and the name of its peer. */
  daemon: text().optional(),
  peer: text().optional(),
  /** Number of the newest receipt from that daemon: older ones are repetitions. */
  receipts: integer(),
  /** Stored before the run of the task ends. */
  outcome: json<Result>().optional(),
  error: text().optional(),
  ended_at: time().optional().as('endedAt'),
})
export type GivenRow = RowOf<typeof givenOffers>

/** Attempts of foreign offers that this daemon requested. */
export const takenOffers = table('network_nats_taken', {
  daemon: text(),
  id: text(),
  attempt: integer(),
  peer: text(),
  title: text(),
  brief: text(),
  state: text<OfferState>(),
  offered_at: time().as('offeredAt'),
  expires_at: time().as('expiresAt'),
  /** Number of sent receipts. */
  receipts: integer(),
  /** End of the lease by the local clock, unless a receipt is answered before. */
  held_until: time().optional().as('heldUntil'),
  /** Milliseconds for which the origin waits for the next receipt; absent: the attempt was not assigned. */
  lease_ms: integer().optional().as('leaseMs'),
  agent: text(),
  workspace_id: text().as('workspaceId'),
  task_id: text().optional().as('taskId'),
  run_id: text().optional().as('runId'),
  outcome: json<Result>().optional(),
  error: text().optional(),
  ended_at: time().optional().as('endedAt'),
  /** When the origin acknowledged the result, or the attempt ended otherwise. */
  told_at: time().optional().as('toldAt'),
})
export type TakenRow = RowOf<typeof takenOffers>

/** Milliseconds for which ended offers are listed; the stream keeps their messages no longer. */
const REMEMBERED_MS = 7 * 24 * 60 * 60_000

/** Deletes offers that ended long ago. @param now epoch milliseconds */
export function sweepOffers(t: Tx, now: number): void {
  const old = now - REMEMBERED_MS
  t.run('DELETE FROM network_nats_given WHERE ended_at < ?', [old])
  t.run('DELETE FROM network_nats_taken WHERE told_at < ? AND expires_at < ?', [old, old])
}
