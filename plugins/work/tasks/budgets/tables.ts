import type { BudgetKind } from '../../../../schemas/tasks.js'

/**
 * Limits, usage by run, agent and day, and the reservations of active runs. A hold exists as long as the lease; `caps` is its
 * share of each budget, `told` the usage that its agent had reported at the last count.
 */
export const BUDGET_TABLES = `
CREATE TABLE tasks_budget (
  kind TEXT NOT NULL, ref TEXT NOT NULL, tokens INTEGER, cost REAL, wall_ms INTEGER, updated_at INTEGER NOT NULL,
  PRIMARY KEY (kind, ref)
) STRICT, WITHOUT ROWID;
CREATE TABLE tasks_spend (
  run_id TEXT NOT NULL, agent_name TEXT NOT NULL, day TEXT NOT NULL, task_id TEXT NOT NULL, tokens INTEGER NOT NULL,
  cost REAL NOT NULL, wall_ms INTEGER NOT NULL, PRIMARY KEY (run_id, agent_name, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_spend_task ON tasks_spend (task_id);
CREATE INDEX tasks_spend_agent ON tasks_spend (agent_name, day);
CREATE TABLE tasks_hold (
  run_id TEXT PRIMARY KEY NOT NULL, session_id TEXT NOT NULL, agent_name TEXT NOT NULL, task_id TEXT NOT NULL,
  caps TEXT NOT NULL, used TEXT NOT NULL, told TEXT NOT NULL, counted_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX tasks_hold_session ON tasks_hold (session_id);
CREATE INDEX tasks_hold_task ON tasks_hold (task_id);
CREATE INDEX tasks_hold_agent ON tasks_hold (agent_name);`

export interface BudgetRow {
  readonly kind: BudgetKind
  readonly ref: string
  readonly tokens: number | null
  readonly cost: number | null
  readonly wall_ms: number | null
  readonly updated_at: number
}

export interface HoldRow {
  readonly run_id: string
  readonly session_id: string
  readonly agent_name: string
  readonly task_id: string
  readonly caps: string
  readonly used: string
  readonly told: string
  readonly counted_at: number
}
