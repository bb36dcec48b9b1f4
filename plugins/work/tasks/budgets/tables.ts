import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
import type { BudgetKind } from '../../../../schemas/tasks.js'
import type { Amounts, Limits } from './amounts.js'

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

const { integer, json, real, text, time } = column

export const budgetTable = table('tasks_budget', {
  kind: text<BudgetKind>(),
  ref: text(),
  tokens: integer().nullable(),
  cost: real().nullable(),
  wall_ms: integer().nullable(),
  updated_at: time(),
})
export type BudgetRow = RowOf<typeof budgetTable>

/** The share that a hold has reserved of each budget. */
export type Caps = { readonly [K in BudgetKind]?: Limits }

/** The reservation of an active run. */
export const holdTable = table('tasks_hold', {
  run_id: text().as('runId'),
  session_id: text().as('sessionId'),
  agent_name: text().as('agentName'),
  task_id: text().as('taskId'),
  caps: json<Caps>(),
  used: json<Amounts>(),
  told: json<{ readonly tokens: number | null; readonly cost: number | null }>(),
  counted_at: time().as('countedAt'),
})
export type Hold = RowOf<typeof holdTable>
