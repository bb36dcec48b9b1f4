import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
import type { RunStatus } from '../api.js'

/** The transitions of a run. States without successors are final. */
export const RUN_TRANSITIONS = {
  scheduled: ['running', 'delegated', 'failed', 'canceled'],
  running: ['completed', 'failed', 'canceled'],
  delegated: [],
  completed: [],
  failed: [],
  canceled: [],
} as const satisfies Readonly<Record<RunStatus, readonly RunStatus[]>>

/** Whether the state has no successor. */
export const isFinal = (status: RunStatus) => RUN_TRANSITIONS[status].length === 0

const { text, integer, time } = column

/** The runs of all jobs and triggers; times in epoch milliseconds. */
export const runs = table('automation_run', {
  seq: integer().generated(),
  id: text(),
  /** Empty for runs of triggers. */
  job_id: text(),
  trigger_id: text().nullable(),
  status: text<RunStatus>(),
  attempt: integer(),
  fire_id: text().nullable(),
  scheduled_at: time().nullable(),
  /** Time of the claim or, after a wait, of the free slot. */
  started_at: time(),
  /** End of the wait for a slot, while it waits. */
  wait_until: time().nullable(),
  ended_at: time().nullable(),
  session_id: text().nullable(),
  /** Delegated runs: the task that continues the work, and its first run. */
  task_id: text().nullable(),
  task_run_id: text().nullable(),
  error: text().nullable(),
  /** JSON. */
  metadata: text().nullable(),
  /** Why a claimed occurrence could not be dispatched; equal to `error`. */
  delivery_error: text().nullable(),
  delivery_error_at: time().nullable(),
  /** Workspace of the job, for events. */
  scope: text().nullable(),
  /** ID of the newest event about the run, which is the cause of the next one. */
  event: text(),
  /** Runs of triggers: the rendered prompt, until the run ends. */
  prompt: text().nullable(),
  /** Number of trigger runs in the chain of causes; 0 for none. */
  depth: integer(),
})
export type RunRow = RowOf<typeof runs>

/** The job or trigger of a run. */
export type RunOf = { readonly jobId: string } | { readonly triggerId: string }

/** The job or trigger of a stored run. */
export const runOf = ({ job_id: jobId, trigger_id: triggerId }: Pick<RunRow, 'job_id' | 'trigger_id'>): RunOf =>
  triggerId === null ? { jobId } : { triggerId }

/** The column and id that select the runs of a definition. */
export const columnOf = (of: RunOf): ['job_id' | 'trigger_id', string] =>
  'jobId' in of ? ['job_id', of.jobId] : ['trigger_id', of.triggerId]

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

export const taskColumns = `ALTER TABLE automation_run ADD COLUMN task_id TEXT;
  ALTER TABLE automation_run ADD COLUMN task_run_id TEXT;`

/** Columns of a new run; `seq` is assigned by the database. */
const INSERTED = runs.shape.flatMap(({ name }) => (name === 'seq' ? [] : [name as Exclude<keyof RunRow, 'seq'>]))

/** Inserts {@link valuesOf} a run and returns its `seq`. */
export const INSERT_RUN = `INSERT INTO automation_run (${INSERTED.join(', ')})
  VALUES (${INSERTED.map(() => '?').join(', ')}) RETURNING seq`

export const valuesOf = (row: Omit<RunRow, 'seq'>) => INSERTED.map(column => row[column])

/** The stored metadata of a run, merged with further members. */
export function mergedMetadata(
  stored: string | null,
  more: Readonly<Record<string, unknown>> | undefined,
): string | null {
  return more === undefined ? stored : JSON.stringify({ ...(stored === null ? {} : JSON.parse(stored)), ...more })
}
