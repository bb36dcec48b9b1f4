import { SegmentIndex } from '../../../desk/archives/api.js'

/** Ids of archived tasks that the kernel did not make, and those of earlier versions: see {@link archivedTasks}. */
export const ARCHIVED_TABLE = `
CREATE TABLE tasks_archived (id TEXT PRIMARY KEY NOT NULL, segment INTEGER NOT NULL) STRICT, WITHOUT ROWID;`

/** The same of their runs and reviews: see {@link archivedParts}. */
export const ARCHIVED_PARTS_TABLE = `
CREATE TABLE tasks_archived_part (id TEXT PRIMARY KEY NOT NULL, segment INTEGER NOT NULL) STRICT, WITHOUT ROWID;`

/** A row of about 14 bytes for each id: see {@link SegmentIndex}. */
export const ARCHIVED_KEYS_TABLES = `CREATE TABLE tasks_archived_task (id INTEGER PRIMARY KEY NOT NULL, segment INTEGER NOT NULL) STRICT;
CREATE TABLE tasks_archived_run (id INTEGER PRIMARY KEY NOT NULL, segment INTEGER NOT NULL) STRICT;
CREATE TABLE tasks_archived_review (id INTEGER PRIMARY KEY NOT NULL, segment INTEGER NOT NULL) STRICT;`

/** Tasks that are in the archive, and the segment that holds each: rows there count only as far as this says so. */
export const archivedTasks = new SegmentIndex({ task: 'tasks_archived_task' }, 'tasks_archived')

/** Runs and reviews of those tasks, which requests name without their task. */
export const archivedParts = new SegmentIndex(
  { trun: 'tasks_archived_run', trev: 'tasks_archived_review' },
  'tasks_archived_part',
)

/** The rows of a task that move with it, by the column that names it. */
export const MOVED = [
  ['tasks_task', 'id'],
  ['tasks_run', 'task_id'],
  ['tasks_event', 'task_id'],
  ['tasks_dependency', 'task_id'],
  ['tasks_block', 'task_id'],
  ['tasks_review', 'task_id'],
  ['tasks_worker', 'task_id'],
  ['tasks_spend', 'task_id'],
  ['tasks_profile', 'task_id'],
  ['tasks_triage', 'task_id'],
  ['tasks_budget', "CASE kind WHEN 'task' THEN ref END"],
] as const

/** What keeps a task in the catalog: its row is about work that is not over, or another task hangs on it. */
export const HELD = `
  SELECT 1 FROM tasks_run WHERE task_id IN (SELECT value FROM json_each(?1)) AND status NOT IN ('completed', 'failed', 'canceled')
  UNION ALL SELECT 1 FROM tasks_kept WHERE task_id IN (SELECT value FROM json_each(?1))
  UNION ALL SELECT 1 FROM tasks_hold WHERE task_id IN (SELECT value FROM json_each(?1))
  UNION ALL SELECT 1 FROM tasks_wake WHERE task_id IN (SELECT value FROM json_each(?1))
  UNION ALL SELECT 1 FROM tasks_worker WHERE task_id IN (SELECT value FROM json_each(?1)) AND ended_at IS NULL
  UNION ALL SELECT 1 FROM tasks_review
    WHERE task_id IN (SELECT value FROM json_each(?1)) AND status IN ('requested', 'routed', 'in_review')
  UNION ALL SELECT 1 FROM tasks_dependency
    WHERE depends_on IN (SELECT value FROM json_each(?1)) AND task_id NOT IN (SELECT value FROM json_each(?1))
  LIMIT 1`
