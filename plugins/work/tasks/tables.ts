import { ARCHIVED_KEYS_TABLES, ARCHIVED_PARTS_TABLE, ARCHIVED_TABLE } from './archive/table.js'
import { BUDGET_TABLES } from './budgets/tables.js'
import { KEPT_TABLE } from './kept/table.js'
import { REVIEW_TABLE } from './reviews/review-row.js'
import { WAKE_TABLE } from './wakes/wakes.js'
import { WORKER_TABLE } from './workers/worker-row.js'

/** Tables of the plugin. Append only: released migrations never change. Times in epoch milliseconds. */
export const TASK_TABLES = [
  {
    id: '001-tasks',
    sql: `
CREATE TABLE tasks_task (
  id TEXT PRIMARY KEY NOT NULL, identifier TEXT, title TEXT NOT NULL, description TEXT, status TEXT NOT NULL,
  priority INTEGER NOT NULL, scope TEXT NOT NULL, workspace_id TEXT, parent_task_id TEXT, max_attempts INTEGER NOT NULL,
  auto_enqueue INTEGER NOT NULL, approval_policy TEXT NOT NULL, approval_state TEXT NOT NULL, owner_kind TEXT, owner_ref TEXT,
  created_by_kind TEXT NOT NULL, created_by_ref TEXT NOT NULL, origin_kind TEXT NOT NULL, origin_ref TEXT NOT NULL,
  wake_creator INTEGER NOT NULL, metadata TEXT, participation TEXT, paused_at INTEGER, paused_by TEXT, paused_reason TEXT,
  pausing_task TEXT, attention_at INTEGER, attention_reason TEXT, attention_by_kind TEXT, attention_by_ref TEXT,
  claimable INTEGER NOT NULL, last_run_failed INTEGER NOT NULL, recurrences TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, closed_at INTEGER,
  latest_event_seq INTEGER NOT NULL, event_count INTEGER NOT NULL, last_activity_at INTEGER NOT NULL
) STRICT;
CREATE INDEX tasks_task_recent ON tasks_task (last_activity_at, id);
CREATE INDEX tasks_task_priority ON tasks_task (priority, last_activity_at, id);
CREATE INDEX tasks_task_workspace ON tasks_task (workspace_id, last_activity_at, id);
CREATE INDEX tasks_task_parent ON tasks_task (parent_task_id) WHERE parent_task_id IS NOT NULL;
CREATE INDEX tasks_task_status ON tasks_task (status, scope, workspace_id);
CREATE INDEX tasks_task_owner ON tasks_task (owner_kind, owner_ref, last_activity_at) WHERE owner_kind IS NOT NULL;
CREATE INDEX tasks_task_pausing ON tasks_task (pausing_task) WHERE pausing_task IS NOT NULL;
CREATE INDEX tasks_task_failed ON tasks_task (id) WHERE last_run_failed = 1;
CREATE TABLE tasks_dependency (
  task_id TEXT NOT NULL, depends_on TEXT NOT NULL, created_at INTEGER NOT NULL, PRIMARY KEY (task_id, depends_on)
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_dependency_on ON tasks_dependency (depends_on);
CREATE TABLE tasks_block (
  id TEXT PRIMARY KEY NOT NULL, task_id TEXT NOT NULL, kind TEXT NOT NULL, reason TEXT NOT NULL, details TEXT,
  created_at INTEGER NOT NULL, created_by_kind TEXT NOT NULL, created_by_ref TEXT NOT NULL, expires_at INTEGER,
  cleared_at INTEGER, cleared_by_kind TEXT, cleared_by_ref TEXT, clear_note TEXT
) STRICT;
CREATE INDEX tasks_block_task ON tasks_block (task_id, created_at);
CREATE INDEX tasks_block_open ON tasks_block (task_id) WHERE cleared_at IS NULL;
CREATE INDEX tasks_block_expiry ON tasks_block (expires_at) WHERE cleared_at IS NULL AND expires_at IS NOT NULL;`,
  },
  {
    id: '002-runs',
    sql: `
CREATE TABLE tasks_run (
  id TEXT PRIMARY KEY NOT NULL, task_id TEXT NOT NULL, kind TEXT NOT NULL, status TEXT NOT NULL, attempt INTEGER NOT NULL,
  recovery_count INTEGER NOT NULL, previous_run_id TEXT, idempotency_key TEXT, origin_kind TEXT NOT NULL,
  origin_ref TEXT NOT NULL, session_id TEXT, claimed_by_kind TEXT, claimed_by_ref TEXT, token_hash TEXT, claim_key TEXT,
  queued_at INTEGER NOT NULL, claimed_at INTEGER, started_at INTEGER, ended_at INTEGER, heartbeat_at INTEGER,
  lease_until INTEGER, lease_ms INTEGER, designation_index INTEGER, designation_brief TEXT, designation_group_id TEXT,
  metadata TEXT, result TEXT, error TEXT, failure_kind TEXT, participation TEXT, place TEXT NOT NULL,
  priority INTEGER NOT NULL, claimable INTEGER NOT NULL, wants TEXT
) STRICT;
CREATE INDEX tasks_run_task ON tasks_run (task_id, attempt, queued_at, id);
CREATE INDEX tasks_run_free ON tasks_run (place, priority DESC, queued_at, id)
  WHERE status = 'queued' AND claimable = 1 AND wants IS NULL;
CREATE INDEX tasks_run_choosy ON tasks_run (place, priority DESC, queued_at, id)
  WHERE status = 'queued' AND claimable = 1 AND wants IS NOT NULL;
CREATE UNIQUE INDEX tasks_run_lease ON tasks_run (session_id) WHERE lease_until IS NOT NULL;
CREATE INDEX tasks_run_claimant ON tasks_run (claimed_by_kind, claimed_by_ref)
  WHERE claimed_by_kind IS NOT NULL AND status NOT IN ('completed', 'failed', 'canceled');
CREATE INDEX tasks_run_session ON tasks_run (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX tasks_run_expiry ON tasks_run (lease_until, id) WHERE lease_until IS NOT NULL;
CREATE INDEX tasks_run_active ON tasks_run (place) WHERE status IN ('claimed', 'starting', 'running');
CREATE INDEX tasks_run_status ON tasks_run (status, queued_at);
CREATE UNIQUE INDEX tasks_run_key ON tasks_run (origin_kind, origin_ref, idempotency_key)
  WHERE idempotency_key IS NOT NULL;
CREATE TABLE tasks_event (
  seq INTEGER PRIMARY KEY NOT NULL, event_id TEXT NOT NULL, task_id TEXT NOT NULL, run_id TEXT, name TEXT NOT NULL,
  at INTEGER NOT NULL, actor_kind TEXT NOT NULL, actor_ref TEXT NOT NULL, origin_kind TEXT NOT NULL,
  origin_ref TEXT NOT NULL, payload TEXT
) STRICT;
CREATE INDEX tasks_event_task ON tasks_event (task_id, seq);`,
  },
  {
    id: '003-scheduler',
    sql: `
CREATE TABLE tasks_scheduler (
  id TEXT PRIMARY KEY NOT NULL, paused_at INTEGER, paused_by TEXT, paused_reason TEXT, updated_at INTEGER NOT NULL
) STRICT;`,
  },
  {
    id: '004-triage',
    sql: `
CREATE TABLE tasks_triage (
  task_id TEXT NOT NULL, actor_kind TEXT NOT NULL, actor_ref TEXT NOT NULL, read INTEGER NOT NULL,
  dismissed INTEGER NOT NULL, archived INTEGER NOT NULL, last_seen_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  PRIMARY KEY (actor_kind, actor_ref, task_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_triage_task ON tasks_triage (task_id);`,
  },
  {
    id: '005-profiles',
    sql: `
CREATE TABLE tasks_profile (
  task_id TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
) STRICT;`,
  },
  { id: '006-workers', sql: WORKER_TABLE },
  {
    id: '010-channel',
    sql: `
ALTER TABLE tasks_run ADD COLUMN channel TEXT;
CREATE INDEX tasks_run_channel ON tasks_run (channel, task_id) WHERE channel IS NOT NULL;`,
  },
  { id: '011-reviews', sql: REVIEW_TABLE },
  { id: '012-budgets', sql: BUDGET_TABLES },
  { id: '013-wakes', sql: WAKE_TABLE },
  {
    id: '014-profiled',
    sql: `
ALTER TABLE tasks_run ADD COLUMN profiled INTEGER;
CREATE INDEX tasks_run_profiled ON tasks_run (priority DESC, queued_at, id)
  WHERE status = 'queued' AND claimable = 1 AND profiled = 1;`,
  },
  { id: '015-attention', sql: 'CREATE INDEX tasks_task_attention ON tasks_task (id) WHERE attention_at IS NOT NULL;' },
  {
    id: '016-approval',
    sql: `
CREATE INDEX tasks_task_approval ON tasks_task (id)
  WHERE status = 'blocked' AND approval_policy = 'manual' AND approval_state = 'pending';`,
  },
  { id: '017-kept', sql: KEPT_TABLE },
  {
    id: '018-next',
    sql: `
ALTER TABLE tasks_run ADD COLUMN next_key TEXT;
ALTER TABLE tasks_run ADD COLUMN next_run TEXT;`,
  },
  { id: '019-archived', sql: ARCHIVED_TABLE },
  { id: '020-archived-parts', sql: ARCHIVED_PARTS_TABLE },
  { id: '021-archived-keys', sql: ARCHIVED_KEYS_TABLES },
  {
    // Each step of a run wrote to them. Only active runs are read by session or lease: they are few, and have other indexes. The id
    // has no number, so that the previous version continues.
    id: 'fewer-indexes',
    sql: 'DROP INDEX tasks_run_session; DROP INDEX tasks_run_expiry;',
  },
  // Only the inbox asked for the runs of a claimant: they are among the few that are active.
  { id: 'no-claimant-index', sql: 'DROP INDEX tasks_run_claimant;' },
] as const
