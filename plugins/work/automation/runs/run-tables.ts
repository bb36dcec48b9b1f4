import { OF_JOBS } from './run-row.js'

export const runTable = `CREATE TABLE automation_run (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, job_id TEXT NOT NULL, status TEXT NOT NULL,
    attempt INTEGER NOT NULL, fire_id TEXT, scheduled_at INTEGER, started_at INTEGER NOT NULL, ended_at INTEGER,
    session_id TEXT, error TEXT, metadata TEXT, scope TEXT, event TEXT NOT NULL
  ) STRICT;
  CREATE INDEX automation_run_job ON automation_run (job_id, seq);
  CREATE INDEX automation_run_time ON automation_run (job_id, started_at);
  CREATE INDEX automation_run_open ON automation_run (job_id) WHERE status IN ('scheduled', 'running');`

export const deliveryColumns = `ALTER TABLE automation_run ADD COLUMN delivery_error TEXT;
  ALTER TABLE automation_run ADD COLUMN delivery_error_at INTEGER;`

/** Columns for runs of triggers, whose `job_id` is empty. */
export const triggerColumns = `ALTER TABLE automation_run ADD COLUMN trigger_id TEXT;
  ALTER TABLE automation_run ADD COLUMN prompt TEXT;
  ALTER TABLE automation_run ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX automation_run_trigger ON automation_run (trigger_id, seq) WHERE trigger_id IS NOT NULL;
  CREATE INDEX automation_run_trigger_time ON automation_run (trigger_id, started_at) WHERE trigger_id IS NOT NULL;
  CREATE INDEX automation_run_session ON automation_run (session_id) WHERE session_id IS NOT NULL;`

/** Occurrences that wait for a slot, in the order in which they were due. */
export const waitColumn = `ALTER TABLE automation_run ADD COLUMN wait_until INTEGER;
  CREATE INDEX automation_run_waiting ON automation_run (scheduled_at, seq) WHERE wait_until IS NOT NULL;`

/**
 * Each claim counts the runs that have a slot, from the index alone: a rush of jobs has a thousand rows. The index contains the
 * status, because SQLite checks it although the index has the same condition.
 */
export const slotIndex = `CREATE INDEX automation_run_slots ON automation_run (wait_until, status)
  WHERE status IN ('scheduled', 'running');`

/**
 * Runs of triggers enter no index by job, and the slots are counted from the index of open runs, which has the columns of
 * `slotIndex`. A claim writes each of these indexes, and each change of the status those of open runs.
 */
export const fewerIndexes = `DROP INDEX automation_run_job; DROP INDEX automation_run_time;
  DROP INDEX automation_run_open; DROP INDEX automation_run_slots;
  CREATE INDEX automation_run_of_job ON automation_run (job_id, seq) WHERE ${OF_JOBS};
  CREATE INDEX automation_run_of_job_time ON automation_run (job_id, started_at) WHERE ${OF_JOBS};
  CREATE INDEX automation_run_taken ON automation_run (job_id, wait_until, status)
    WHERE status IN ('scheduled', 'running');`

/** Each slot that is given asks which wait ends first, and a rush has a thousand that wait. */
export const waitIndex = `CREATE INDEX automation_run_wait_end ON automation_run (wait_until, seq)
  WHERE wait_until IS NOT NULL;`

export const taskColumns = `ALTER TABLE automation_run ADD COLUMN task_id TEXT;
  ALTER TABLE automation_run ADD COLUMN task_run_id TEXT;`
