import type { Migration } from '../../../kernel/plugin.js'

/** Days for which counts are kept, including today. */
export const KEPT_DAYS = 90

/** Tables of the plugin. `workspace_id` is empty for events without a workspace; times are epoch milliseconds. */
export const migrations: readonly Migration[] = [
  {
    id: '001-overview',
    sql: `
CREATE TABLE observe_hour (
  hour INTEGER NOT NULL, workspace_id TEXT NOT NULL, events INTEGER NOT NULL, last_at INTEGER NOT NULL,
  PRIMARY KEY (hour, workspace_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE observe_day (
  day TEXT NOT NULL, workspace_id TEXT NOT NULL, runs_completed INTEGER NOT NULL, runs_failed INTEGER NOT NULL,
  runs_canceled INTEGER NOT NULL, tasks_closed INTEGER NOT NULL, hook_runs INTEGER NOT NULL,
  hook_failures INTEGER NOT NULL, PRIMARY KEY (day, workspace_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE observe_progress (
  id TEXT PRIMARY KEY NOT NULL, counted INTEGER NOT NULL, history INTEGER NOT NULL, history_end INTEGER NOT NULL,
  history_days INTEGER NOT NULL
) STRICT;`,
  },
]
