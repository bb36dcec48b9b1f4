import type { Db, SqlValue, Tx } from '../../kernel/plugin.js'
import { BRIEFING_TABLE } from './agent/briefing.js'
import type { FailureKind, SessionInfo, SessionState, StopReason } from './api.js'

/** Migrations of the sessions plugin: one only ever adds to the list. */
export const SESSION_TABLES = [
  {
    id: '001',
    sql: `
CREATE TABLE sessions_session (
  id TEXT PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  agent_name TEXT NOT NULL,
  workspace_id TEXT NOT NULL,
  workspace_path TEXT NOT NULL,
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  reasoning_effort TEXT,
  speed TEXT,
  state TEXT NOT NULL,
  stop_reason TEXT,
  stop_detail TEXT,
  failure_kind TEXT,
  failure_summary TEXT,
  failure_bundle TEXT,
  acp_session_id TEXT,
  supports_load INTEGER,
  epoch INTEGER NOT NULL,
  journal_bytes INTEGER NOT NULL,
  cause TEXT,
  last_activity_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_session_state ON sessions_session (state);
CREATE INDEX sessions_session_workspace ON sessions_session (workspace_id, created_at);
CREATE INDEX sessions_session_created ON sessions_session (created_at);
CREATE TABLE sessions_prompt (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  idempotency_key TEXT,
  digest TEXT NOT NULL,
  text TEXT NOT NULL,
  mode TEXT NOT NULL,
  source TEXT NOT NULL,
  status TEXT NOT NULL,
  turn_id TEXT,
  generation INTEGER NOT NULL,
  reply TEXT NOT NULL,
  cause TEXT,
  enqueued_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_prompt_session ON sessions_prompt (session_id, status, seq);
CREATE UNIQUE INDEX sessions_prompt_message ON sessions_prompt (session_id, message_id);
CREATE UNIQUE INDEX sessions_prompt_key ON sessions_prompt (session_id, idempotency_key) WHERE idempotency_key IS NOT NULL;`,
  },
  {
    id: '002-agent',
    sql: 'CREATE INDEX sessions_session_agent ON sessions_session (workspace_id, agent_name, state)',
  },
  {
    id: '003-lists',
    sql: `
CREATE INDEX sessions_session_activity ON sessions_session (last_activity_at, id);
CREATE INDEX sessions_session_counts ON sessions_session (state, failure_kind, journal_bytes);`,
  },
  { id: '004-usage', sql: 'ALTER TABLE sessions_session ADD COLUMN usage TEXT' },
  { id: '005-briefing', sql: BRIEFING_TABLE },
] as const

/** A row of sessions_session: the truth about the state of a session. Times in epoch milliseconds. */
export interface SessionRow {
  readonly id: string
  /** Empty for one without a name. */
  readonly name: string
  readonly type: SessionInfo['type']
  readonly agent_name: string
  readonly workspace_id: string
  readonly workspace_path: string
  readonly provider: string
  readonly model: string
  readonly reasoning_effort: string | null
  readonly speed: 'normal' | 'fast' | null
  readonly state: SessionState
  readonly stop_reason: StopReason | null
  readonly stop_detail: string | null
  readonly failure_kind: FailureKind | null
  readonly failure_summary: string | null
  readonly failure_bundle: string | null
  readonly acp_session_id: string | null
  /** 1 when the last process said that it can load sessions. */
  readonly supports_load: number | null
  readonly epoch: number
  /** Size of the journal when last looked at. */
  readonly journal_bytes: number
  readonly cause: string | null
  /** A {@link Digest} as JSON; null: nothing was counted yet. */
  readonly usage: string | null
  readonly last_activity_at: number
  readonly created_at: number
  readonly updated_at: number
}

/** It never had a process, and so nothing is in its journal that has to be ended. */
export const isUnused = ({ state, acp_session_id }: SessionRow) => state === 'active' && acp_session_id === null

/** What of a row may change. */
export type SessionChange = Partial<Omit<SessionRow, 'id' | 'created_at'>>

/** Which sessions to list, in what order, from where. */
export interface SessionFilter {
  readonly workspaceId?: string | undefined
  readonly state?: SessionState | undefined
  readonly type?: string | undefined
  readonly agent?: string | undefined
  /** Part of the name, the agent's name or the id, in any case. */
  readonly text?: string | undefined
  readonly resumable?: boolean | undefined
  readonly sort: 'created_at' | 'last_activity_at'
  /** Sort value and id of the last session of the page before. */
  readonly after?: readonly [number, string] | undefined
}

const COLUMNS: ReadonlySet<string> = new Set<keyof SessionRow>([
  'name',
  'type',
  'agent_name',
  'workspace_id',
  'workspace_path',
  'provider',
  'model',
  'reasoning_effort',
  'speed',
  'state',
  'stop_reason',
  'stop_detail',
  'failure_kind',
  'failure_summary',
  'failure_bundle',
  'acp_session_id',
  'supports_load',
  'epoch',
  'journal_bytes',
  'cause',
  'usage',
  'last_activity_at',
  'created_at',
  'updated_at',
])

/** Reads and writes rows of sessions_session. */
export class SessionTable {
  /** Rises with every write: what was counted before may not hold. */
  changes = 0

  constructor(private readonly db: Db) {}

  get(id: string): SessionRow | undefined {
    return this.db.get<SessionRow>('SELECT * FROM sessions_session WHERE id = ?', [id])
  }

  /** Reads a row again and again, from the table only after something changed there: a reader looks at it for each frame. */
  follow(id: string): () => SessionRow | undefined {
    let seen = -1
    let row: SessionRow | undefined
    return () => {
      if (seen !== this.changes) row = this.get(id)
      seen = this.changes
      return row
    }
  }

  /** Those that an earlier daemon, or this one, has not stopped. */
  unstopped(): SessionRow[] {
    return this.db.all<SessionRow>("SELECT * FROM sessions_session WHERE state IN ('starting', 'active', 'stopping')")
  }

  /** Those that a prompt starts again. */
  resumable(agent?: string): SessionRow[] {
    const { where, values } = conditions({ agent, resumable: true, sort: 'created_at' })
    return this.db.all<SessionRow>(`SELECT * FROM sessions_session WHERE ${where}`, values)
  }

  insert(t: Tx, row: SessionRow): void {
    this.changes++
    const names = Object.keys(row).filter(name => name === 'id' || COLUMNS.has(name))
    const values = names.map(name => row[name as keyof SessionRow])
    t.run(`INSERT INTO sessions_session (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`, values)
  }

  update(t: Tx, id: string, change: SessionChange): void {
    this.changes++
    const names = Object.keys(change).filter(name => COLUMNS.has(name))
    const values: SqlValue[] = names.map(name => change[name as keyof SessionChange] ?? null)
    t.run(`UPDATE sessions_session SET ${names.map(name => `${name} = ?`).join(', ')} WHERE id = ?`, [...values, id])
  }

  remove(t: Tx, id: string): void {
    this.changes++
    t.run('DELETE FROM sessions_prompt WHERE session_id = ?', [id])
    t.run('DELETE FROM sessions_briefing WHERE session_id = ?', [id])
    t.run('DELETE FROM sessions_session WHERE id = ?', [id])
  }

  /** Newest first by the sort column; `limit` rows at most. */
  list(filter: SessionFilter, limit: number): SessionRow[] {
    const { where, values } = conditions(filter)
    const { sort, after } = filter
    const from = after ? ` AND (${sort}, id) < (?, ?)` : ''
    return this.db.all<SessionRow>(
      `SELECT * FROM sessions_session WHERE ${where}${from} ORDER BY ${sort} DESC, id DESC LIMIT ?`,
      [...values, ...(after ?? []), limit],
    )
  }

  count(filter: SessionFilter): number {
    const { where, values } = conditions(filter)
    return this.db.get<{ n: number }>(`SELECT count(*) AS n FROM sessions_session WHERE ${where}`, [...values])?.n ?? 0
  }

  /** Sessions of a workspace that are not stopped. */
  activeIn(reads: Pick<Db, 'get'> | Tx, workspaceId: string): number {
    const sql = "SELECT count(*) AS n FROM sessions_session WHERE workspace_id = ? AND state <> 'stopped'"
    return reads.get<{ n: number }>(sql, [workspaceId])?.n ?? 0
  }
}

function conditions(filter: SessionFilter): { where: string; values: SqlValue[] } {
  const parts: string[] = ['1']
  const values: SqlValue[] = []
  const equal = (column: string, value: string | undefined) => {
    if (value === undefined) return
    parts.push(`${column} = ?`)
    values.push(value)
  }
  equal('workspace_id', filter.workspaceId)
  equal('state', filter.state)
  equal('type', filter.type)
  equal('agent_name', filter.agent)
  if (filter.text) {
    parts.push("(name || ' ' || agent_name || ' ' || id) LIKE ? ESCAPE '\\'")
    values.push(`%${filter.text.replace(/[\\%_]/g, '\\$&')}%`)
  }
  const restartable = "(state = 'stopped' AND stop_reason IN ('shutdown', 'agent_crashed'))"
  if (filter.resumable === true) parts.push(restartable)
  if (filter.resumable === false) parts.push(`NOT ifnull(${restartable}, 0)`)
  return { where: parts.join(' AND '), values }
}
