import type { Db, SqlValue, Tx } from '../../../kernel/plugin.js'
import type { SessionState } from './api.js'
import { ARCHIVED_TABLES } from './archive/table.js'
import { ATTACHMENT_TABLE } from './attachments/store.js'
import { USAGE_DAY_TABLE } from './journal/usage-days.js'
import { Remembered } from './lifecycle/remembered.js'
import { REFERENCE_INDEXES } from './lifecycle/retire.js'
import { type SessionChange, type SessionRow, sessionRows } from './row.js'

export { isUnused, NEW_ROW, type SessionChange, type SessionRow } from './row.js'

const BRIEFING_TABLE = `
CREATE TABLE sessions_briefing (
  session_id TEXT NOT NULL,
  name TEXT NOT NULL,
  text TEXT NOT NULL,
  changed INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX sessions_briefing_part ON sessions_briefing (session_id, name);`

/** Migrations of the sessions plugin. The list is append-only. */
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
  {
    id: '006-permissions',
    sql: `
ALTER TABLE sessions_session ADD COLUMN permissions_asked TEXT;
ALTER TABLE sessions_session ADD COLUMN permissions TEXT;`,
  },
  { id: '007-attachments', sql: ATTACHMENT_TABLE },
  { id: '007-usage-days', sql: USAGE_DAY_TABLE },
  {
    id: '008-whole',
    sql: `
ALTER TABLE sessions_session ADD COLUMN attached_to TEXT;
ALTER TABLE sessions_session ADD COLUMN attach_expires_at INTEGER;
ALTER TABLE sessions_session ADD COLUMN archived_at INTEGER;
ALTER TABLE sessions_session ADD COLUMN unseen_since INTEGER;
ALTER TABLE sessions_session ADD COLUMN attention_changed_at INTEGER;
ALTER TABLE sessions_session ADD COLUMN selection TEXT;
ALTER TABLE sessions_session ADD COLUMN selection_revision INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions_session ADD COLUMN effective TEXT;
ALTER TABLE sessions_session ADD COLUMN cuts TEXT;
ALTER TABLE sessions_session ADD COLUMN rewound TEXT;
ALTER TABLE sessions_session ADD COLUMN forked_from TEXT;
ALTER TABLE sessions_session ADD COLUMN worktree_id TEXT;
ALTER TABLE sessions_prompt ADD COLUMN runtime TEXT;
ALTER TABLE sessions_prompt ADD COLUMN attachments TEXT;
CREATE INDEX sessions_session_unseen ON sessions_session (workspace_id) WHERE unseen_since IS NOT NULL;
CREATE INDEX sessions_session_archived ON sessions_session (archived_at) WHERE archived_at IS NOT NULL;`,
  },
  { id: '010-sandbox', sql: 'ALTER TABLE sessions_session ADD COLUMN sandbox TEXT' },
  {
    id: '011-spawned',
    sql: `
ALTER TABLE sessions_session ADD COLUMN lineage TEXT;
ALTER TABLE sessions_session ADD COLUMN rights TEXT;`,
  },
  { id: '012-goal', sql: 'ALTER TABLE sessions_session ADD COLUMN goal TEXT' },
  { id: '013-context', sql: 'ALTER TABLE sessions_prompt ADD COLUMN context_blocks TEXT' },
  { id: '014-person', sql: 'ALTER TABLE sessions_prompt ADD COLUMN on_behalf_of TEXT' },
  { id: '015-participation', sql: 'ALTER TABLE sessions_session ADD COLUMN participation TEXT' },
  { id: '016-references', sql: REFERENCE_INDEXES },
  { id: '017-prompts-moved', sql: 'ALTER TABLE sessions_session ADD COLUMN prompts_moved INTEGER' },
  { id: '018-archived', sql: ARCHIVED_TABLES },
] as const

/** Filter, order and position of a session list. */
export interface SessionFilter {
  readonly workspaceId?: string | undefined
  readonly state?: SessionState | undefined
  readonly type?: string | undefined
  readonly agent?: string | undefined
  /** Part of the name, the agent's name or the ID, case-insensitive. */
  readonly text?: string | undefined
  readonly resumable?: boolean | undefined
  /** True: archived sessions only; false: others only. */
  readonly archived?: boolean | undefined
  readonly sort: 'created_at' | 'last_activity_at'
  /** Sort value and ID of the last session of the page before. */
  readonly after?: readonly [number, string] | undefined
}

/** Rows of archived sessions that are kept for readers. */
const MOST_LENT = 256

/** Reads and writes rows of sessions_session. */
export class SessionTable {
  /** Incremented with every write, so that cached counts can be invalidated. */
  changes = 0
  /** Cached because a turn reads its row a dozen times, and every reader of its session reads it for each frame. */
  readonly #rows = new Remembered(id => this.db.get<SessionRow>('SELECT * FROM sessions_session WHERE id = ?', [id]))
  /** Rows of archived sessions for requests that read them: see {@link lend}. */
  readonly #lent = new Map<string, SessionRow>()

  /** @param onChange notification about a change of the list, once it is durable */
  constructor(
    private readonly db: Db,
    private readonly onChange: (
      kind: 'created' | 'updated' | 'stopped' | 'removed',
      id: string,
      workspaceId: string,
    ) => void,
    private readonly attention: (row: SessionRow) => void,
  ) {}

  /** The row of a session; of an archived one only while it is lent. */
  get(id: string): SessionRow | undefined {
    return this.#rows.get(id) ?? this.#lent.get(id)
  }

  inCatalog(id: string): boolean {
    return this.#rows.get(id) !== undefined
  }

  /** Keeps the row of an archived session for readers. It cannot be changed. */
  lend(row: SessionRow): void {
    this.#lent.delete(row.id)
    this.#lent.set(row.id, row)
    const [oldest] = this.#lent.size > MOST_LENT ? this.#lent.keys() : []
    if (oldest !== undefined) this.#lent.delete(oldest)
  }

  /** The caller moves the row to the archive in this transaction. Requests that read it now go on. */
  movedOut(row: SessionRow): void {
    this.#changed(row.id)
    this.lend(row)
  }

  /** The caller brings the row back in this transaction. */
  restored(id: string): void {
    this.#changed(id)
    this.#lent.delete(id)
  }

  /** Sessions that are not stopped, including those of an earlier daemon. */
  unstopped(): SessionRow[] {
    return this.db.all<SessionRow>("SELECT * FROM sessions_session WHERE state IN ('starting', 'active', 'stopping')")
  }

  /** Whether a session that it spawned is not stopped. Forks do not count. */
  hasChildren(id: string): boolean {
    return this.unstopped().some(({ lineage }) => {
      const parent = lineage === null ? undefined : JSON.parse(lineage)
      return parent?.parent_session_id === id && parent.spawn_depth > 0
    })
  }

  /** Whether the session has a fork, or a session that its agent started. */
  isOrigin(id: string): boolean {
    const sql = `SELECT EXISTS (SELECT 1 FROM sessions_session WHERE forked_from = ?1) OR EXISTS (
      SELECT 1 FROM sessions_session WHERE lineage IS NOT NULL AND lineage ->> 'parent_session_id' = ?1)`
    return this.db.row(sql, [id])?.[0] === 1
  }

  /** Sessions that a prompt restarts. */
  resumable(agent?: string): SessionRow[] {
    const { where, values } = conditions({ agent, resumable: true, sort: 'created_at' })
    return this.db.all<SessionRow>(`SELECT * FROM sessions_session WHERE ${where}`, values)
  }

  /** Sessions of a workspace that work in worktrees, by ID. */
  inWorktrees(workspaceId: string): { readonly id: string; readonly worktree: string }[] {
    const sql = `SELECT id, worktree_id AS worktree FROM sessions_session
      WHERE workspace_id = ? AND worktree_id IS NOT NULL ORDER BY id`
    return this.db.all(sql, [workspaceId])
  }

  insert(t: Tx, row: SessionRow): void {
    this.#changed(row.id)
    this.db.onDurable(t, () => this.onChange('created', row.id, row.workspace_id))
    sessionRows.insert(t, row)
  }

  update(t: Tx, id: string, change: SessionChange): void {
    this.#changed(id)
    const kind = change.state === 'stopped' ? 'stopped' : 'updated'
    this.db.onDurable(t, () => {
      const row = this.get(id)
      if (!row) return
      this.onChange(kind, id, row.workspace_id)
      if (change.attention_changed_at !== undefined) this.attention(row)
    })
    this.note(t, id, change)
  }

  /** {@link update} of columns outside the catalog: its readers are not notified. */
  note(t: Tx, id: string, change: SessionChange): void {
    this.#changed(id)
    const isLost = sessionRows.update(t, { id }, change) === 0 && this.#lent.has(id)
    if (isLost) throw new Error(`the session ${id} is in the archive and has to be brought back before it is changed`)
  }

  remove(t: Tx, id: string): void {
    const workspaceId = this.get(id)?.workspace_id ?? ''
    this.#changed(id)
    this.db.onDurable(t, () => this.onChange('removed', id, workspaceId))
    t.run('DELETE FROM sessions_prompt WHERE session_id = ?', [id])
    t.run('DELETE FROM sessions_attachment WHERE session_id = ?', [id])
    t.run('DELETE FROM sessions_briefing WHERE session_id = ?', [id])
    t.run('DELETE FROM sessions_session WHERE id = ?', [id])
  }

  /** Newest first by the sort column; `limit` rows at most. */
  list(filter: SessionFilter, limit: number): SessionRow[] {
    return sessionsIn(this.db, filter, limit)
  }

  count(filter: SessionFilter): number {
    const isArchived = 'INDEXED BY sessions_session_archived WHERE archived_at IS NOT NULL AND'
    if (filter.archived) return this.#count(isArchived, filter)
    // An index has the archived sessions; a count of the others would read each whole row.
    return this.#count('WHERE', filter) - this.#count(isArchived, filter)
  }

  #count(from: string, filter: SessionFilter): number {
    const { where, values } = conditions({ ...filter, archived: undefined })
    return Number(this.db.row(`SELECT count(*) FROM sessions_session ${from} ${where}`, values)?.[0])
  }

  /** Number of sessions of a workspace that are not stopped. */
  activeIn(reads: Pick<Db, 'get'> | Tx, workspaceId: string): number {
    const sql = "SELECT count(*) AS n FROM sessions_session WHERE workspace_id = ? AND state <> 'stopped'"
    return reads.get<{ n: number }>(sql, [workspaceId])?.n ?? 0
  }

  /** Number of sessions of an agent with a running prompt. */
  busyWith(reads: Pick<Db, 'get'>, agent: string): number {
    const sql = `SELECT count(DISTINCT s.id) AS n FROM sessions_prompt p JOIN sessions_session s ON s.id = p.session_id
      WHERE s.agent_name = ? AND s.state <> 'stopped' AND p.status IN ('starting', 'running')`
    return reads.get<{ n: number }>(sql, [agent])?.n ?? 0
  }

  #changed(id: string): void {
    this.changes++
    this.#rows.changed(id)
  }
}

/** {@link SessionTable.list} of any database with the tables of sessions. */
export function sessionsIn(db: Pick<Db, 'all'>, filter: SessionFilter, limit: number): SessionRow[] {
  const { where, values } = conditions(filter)
  const { sort, after } = filter
  const from = after ? ` AND (${sort}, id) < (?, ?)` : ''
  return db.all<SessionRow>(
    `SELECT * FROM sessions_session WHERE ${where}${from} ORDER BY ${sort} DESC, id DESC LIMIT +?`,
    [...values, ...(after ?? []), limit],
  )
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
  const restartable = "(state = 'stopped' AND stop_reason IN ('shutdown', 'agent_crashed') AND archived_at IS NULL)"
  if (filter.resumable === true) parts.push(restartable)
  if (filter.resumable === false) parts.push(`NOT ifnull(${restartable}, 0)`)
  if (filter.archived !== undefined) parts.push(`archived_at IS ${filter.archived ? 'NOT ' : ''}NULL`)
  return { where: parts.join(' AND '), values }
}
