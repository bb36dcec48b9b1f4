import { History } from '../../../kernel/kit/history.js'
import { type Db, iso, type Tx } from '../../../kernel/plugin.js'
import type { WakeSource } from '../../../schemas/agents/sidecars.js'
import type { WakeEvent, WakeReason, WakeResult, WakeState } from '../../../schemas/sessions.js'

/** Number of shown decisions. */
const RECENT = 20

export const wakeTables = `CREATE TABLE heartbeats_wake (
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, agent_name TEXT NOT NULL, session_id TEXT NOT NULL,
  workspace_id TEXT NOT NULL, source TEXT NOT NULL, result TEXT NOT NULL, reason TEXT NOT NULL, snapshot_id TEXT,
  policy_digest TEXT, config_digest TEXT, prompt_id TEXT, idempotency_key TEXT, created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL) STRICT;
CREATE INDEX heartbeats_wake_expires ON heartbeats_wake (expires_at);
CREATE INDEX heartbeats_wake_session ON heartbeats_wake (session_id, seq);
CREATE INDEX heartbeats_wake_agent ON heartbeats_wake (agent_name, seq);
CREATE INDEX heartbeats_wake_key ON heartbeats_wake (agent_name, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE TABLE heartbeats_state (
  session_id TEXT NOT NULL UNIQUE, agent_name TEXT NOT NULL, workspace_id TEXT NOT NULL, last_result TEXT NOT NULL,
  last_reason TEXT NOT NULL, last_sent_at INTEGER, next_allowed_at INTEGER, snapshot_id TEXT, coalesced INTEGER NOT NULL,
  updated_at INTEGER NOT NULL) STRICT`

export const failuresColumn = 'ALTER TABLE heartbeats_state ADD COLUMN failures INTEGER NOT NULL DEFAULT 0'

/** One decision, for the audit of wake-ups. */
export type WakeRow = {
  readonly id: string
  readonly agent_name: string
  readonly session_id: string
  readonly workspace_id: string
  readonly source: WakeSource
  readonly result: WakeResult
  readonly reason: WakeReason
  readonly snapshot_id: string | null
  readonly policy_digest: string | null
  readonly config_digest: string | null
  /** The turn it started. */
  readonly prompt_id: string | null
  readonly idempotency_key: string | null
  readonly created_at: number
  readonly expires_at: number
}

/** State of the wake-ups of one session. */
export type StateRow = {
  readonly session_id: string
  readonly agent_name: string
  readonly workspace_id: string
  readonly last_result: WakeResult
  readonly last_reason: WakeReason
  readonly last_sent_at: number | null
  readonly next_allowed_at: number | null
  readonly snapshot_id: string | null
  readonly coalesced: number
  /** Wake-ups in a row during whose turn the agent crashed. */
  readonly failures: number
  readonly updated_at: number
}

/** Decisions about wake-ups and the resulting state. */
export class Wakes {
  readonly #history: History<WakeRow & { readonly seq: number }>

  constructor(private readonly db: Db) {
    this.#history = new History(db, { table: 'heartbeats_wake', time: 'expires_at' })
  }

  state(sessionId: string): StateRow | undefined {
    return this.db.get<StateRow>('SELECT * FROM heartbeats_state WHERE session_id = ?', [sessionId])
  }

  /** State of the agent's session with the latest decision, optionally within one workspace. */
  latestState(agent: string, workspaceId?: string): StateRow | undefined {
    return this.db.get<StateRow>(
      'SELECT * FROM heartbeats_state WHERE agent_name = ? AND ifnull(?, workspace_id) = workspace_id ORDER BY updated_at DESC LIMIT 1',
      [agent, workspaceId ?? null],
    )
  }

  /** Sessions with at least that many failures in a row. */
  failing(least: number): StateRow[] {
    return this.db.all<StateRow>('SELECT * FROM heartbeats_state WHERE failures >= ? ORDER BY session_id', [least])
  }

  setFailures(t: Tx, sessionId: string, failures: number): void {
    t.run('UPDATE heartbeats_state SET failures = ? WHERE session_id = ?', [failures, sessionId])
  }

  /** Newest first, at most {@link RECENT}. */
  recent(
    by: { readonly session: string } | { readonly agent: string; readonly workspace?: string | undefined },
  ): WakeRow[] {
    const of = 'session' in by ? { session_id: by.session } : { agent_name: by.agent, workspace_id: by.workspace }
    return this.#history.page(of, { limit: RECENT })
  }

  /** @param sessionId empty: any */
  byKey(agent: string, sessionId: string, key: string | undefined): WakeRow | undefined {
    if (key === undefined) return undefined
    return this.db.get<WakeRow>(
      `SELECT * FROM heartbeats_wake WHERE agent_name = ? AND idempotency_key = ? AND ? IN ('', session_id)
       ORDER BY seq DESC`,
      [agent, key, sessionId],
    )
  }

  /**
   * Stores a decision.
   * @param nextAllowedAt time of the next possible wake-up, if known
   * @param hasSession false: there is no session with a state
   */
  record(t: Tx, row: WakeRow, nextAllowedAt: number | undefined, hasSession: boolean): void {
    this.#history.append(t, row)
    if (!hasSession) return
    const sent = row.result === 'sent'
    t.run(
      `INSERT INTO heartbeats_state (session_id, agent_name, workspace_id, last_result, last_reason, last_sent_at,
         next_allowed_at, snapshot_id, coalesced, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (session_id) DO UPDATE SET last_result = excluded.last_result, last_reason = excluded.last_reason,
         last_sent_at = ifnull(excluded.last_sent_at, last_sent_at),
         next_allowed_at = ifnull(excluded.next_allowed_at, next_allowed_at), snapshot_id = excluded.snapshot_id,
         coalesced = coalesced + excluded.coalesced, updated_at = excluded.updated_at`,
      [
        row.session_id,
        row.agent_name,
        row.workspace_id,
        row.result,
        row.reason,
        sent ? row.created_at : null,
        nextAllowedAt ?? null,
        row.snapshot_id,
        row.result === 'coalesced' ? 1 : 0,
        row.created_at,
      ],
    )
  }

  /** Deletes expired entries. @param now epoch milliseconds @param keptMs for states */
  async forget(now: number, keptMs: number): Promise<void> {
    const stale = [now - keptMs]
    const sql = 'SELECT count(*) AS n FROM heartbeats_wake WHERE expires_at <= ?'
    const expired = this.db.get<{ n: number }>(sql, [now])?.n ?? 0
    const left =
      this.db.get<{ n: number }>('SELECT count(*) AS n FROM heartbeats_state WHERE updated_at <= ?', stale)?.n ?? 0
    if (expired + left === 0) return
    await this.db.tx(t => {
      this.#history.prune(t, {}, { since: now + 1 })
      t.run('DELETE FROM heartbeats_state WHERE updated_at <= ?', stale)
    })
  }
}

export const eventToWire = (row: WakeRow): WakeEvent => ({
  id: row.id,
  agent_name: row.agent_name,
  ...(row.session_id !== '' && { session_id: row.session_id }),
  ...(row.workspace_id !== '' && { workspace_id: row.workspace_id }),
  source: row.source,
  result: row.result,
  reason: row.reason,
  ...(row.snapshot_id !== null && { policy_snapshot_id: row.snapshot_id }),
  ...(row.prompt_id !== null && { synthetic_prompt_id: row.prompt_id }),
  created_at: iso(row.created_at),
  expires_at: iso(row.expires_at),
})

export const stateToWire = (row: StateRow): WakeState => ({
  session_id: row.session_id,
  agent_name: row.agent_name,
  workspace_id: row.workspace_id,
  coalesced_count: row.coalesced,
  last_result: row.last_result,
  last_reason: row.last_reason,
  ...(row.last_sent_at !== null && { last_wake_at: iso(row.last_sent_at) }),
  ...(row.next_allowed_at !== null && { next_allowed_at: iso(row.next_allowed_at) }),
  ...(row.snapshot_id !== null && { policy_snapshot_id: row.snapshot_id }),
  updated_at: iso(row.updated_at),
})
