import type { Migration } from '../../../../kernel/plugin.js'
import { SegmentIndex } from '../../../desk/archives/api.js'

/**
 * The segment of each archived run, and the number of runs per job and segment. Times in epoch milliseconds; `seq` gives the claim
 * order of runs.
 */
export const archivedTables = `
CREATE TABLE automation_archived_run (id INTEGER PRIMARY KEY NOT NULL, segment INTEGER NOT NULL) STRICT;
CREATE TABLE automation_archived (id TEXT PRIMARY KEY NOT NULL, segment INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE automation_archived_part (
  job_id TEXT NOT NULL, segment INTEGER NOT NULL, runs INTEGER NOT NULL, newest_seq INTEGER NOT NULL, newest_at INTEGER NOT NULL,
  PRIMARY KEY (job_id, segment)) STRICT, WITHOUT ROWID;`

/** Rows of a segment are valid only if this index contains them. */
export const archivedRuns = new SegmentIndex({ run: 'automation_archived_run' }, 'automation_archived')

/** The run table of a segment: the columns of the catalog with fewer indexes, because lists there are by job, or of everything. */
export const SEGMENT_TABLES: readonly Migration[] = [
  {
    id: '001-run',
    sql: `CREATE TABLE automation_run (
      seq INTEGER PRIMARY KEY NOT NULL, id TEXT NOT NULL UNIQUE, job_id TEXT NOT NULL, status TEXT NOT NULL,
      attempt INTEGER NOT NULL, fire_id TEXT, scheduled_at INTEGER, started_at INTEGER NOT NULL, ended_at INTEGER,
      session_id TEXT, error TEXT, metadata TEXT, scope TEXT, event TEXT NOT NULL, delivery_error TEXT, delivery_error_at INTEGER,
      trigger_id TEXT, prompt TEXT, depth INTEGER NOT NULL DEFAULT 0, wait_until INTEGER, task_id TEXT, task_run_id TEXT
    ) STRICT;
    CREATE INDEX automation_run_job ON automation_run (job_id, seq);`,
  },
]
