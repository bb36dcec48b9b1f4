import { iso } from '../../../../kernel/plugin.js'
import type { LastRun, Run } from '../../../../schemas/automation.js'
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

/** A run as it is stored; times in epoch milliseconds. */
export interface RunRow {
  readonly seq: number
  readonly id: string
  /** Empty for runs of triggers. */
  readonly job_id: string
  readonly trigger_id: string | null
  readonly status: RunStatus
  readonly attempt: number
  readonly fire_id: string | null
  readonly scheduled_at: number | null
  /** When it was claimed or, after waiting for a slot, got one. */
  readonly started_at: number
  /** While it waits for a slot: until when, at most. */
  readonly wait_until: number | null
  readonly ended_at: number | null
  readonly session_id: string | null
  /** Delegated runs: the task that continues the work, and its first run. */
  readonly task_id: string | null
  readonly task_run_id: string | null
  readonly error: string | null
  readonly metadata: string | null
  /** Why a claimed occurrence could not be dispatched; equal to `error`. */
  readonly delivery_error: string | null
  readonly delivery_error_at: number | null
  /** Workspace of the job, for events. */
  readonly scope: string | null
  /** The newest event about it: the cause of the next. */
  readonly event: string
  /** Runs of triggers: the rendered prompt, until the run ends. */
  readonly prompt: string | null
  /** Number of trigger runs in the chain of causes; 0 for none. */
  readonly depth: number
}

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

export const taskColumns = `ALTER TABLE automation_run ADD COLUMN task_id TEXT;
  ALTER TABLE automation_run ADD COLUMN task_run_id TEXT;`

/** Columns of a new run; `seq` is assigned by the database. */
const INSERTED = [
  ...([
    'id',
    'job_id',
    'trigger_id',
    'status',
    'attempt',
    'fire_id',
    'scheduled_at',
    'started_at',
    'wait_until',
    'ended_at',
  ] as const),
  ...(['session_id', 'task_id', 'task_run_id', 'error', 'metadata', 'delivery_error', 'delivery_error_at'] as const),
  ...(['scope', 'event', 'prompt', 'depth'] as const),
]

/** Inserts {@link valuesOf} a run and returns its `seq`. */
export const INSERT_RUN = `INSERT INTO automation_run (${INSERTED.join(', ')})
  VALUES (${INSERTED.map(() => '?').join(', ')}) RETURNING seq`

export const valuesOf = (row: Omit<RunRow, 'seq'>) => INSERTED.map(column => row[column])

/** The `last_run` member of a job. */
export function lastRunToWire({ id, status, error, started_at: at }: RunRow): LastRun {
  return { id, status, started_at: iso(at), ...(error === null ? {} : { error }) }
}

/** The wire form of a run. */
export function runToWire(row: RunRow): Run {
  return {
    id: row.id,
    ...(row.trigger_id === null ? { job_id: row.job_id } : { trigger_id: row.trigger_id }),
    status: row.status,
    attempt: row.attempt,
    started_at: iso(row.started_at),
    ended_at: row.ended_at === null ? null : iso(row.ended_at),
    scheduled_at: row.scheduled_at === null ? null : iso(row.scheduled_at),
    ...(row.fire_id === null ? {} : { fire_id: row.fire_id }),
    ...(row.session_id === null ? {} : { session_id: row.session_id }),
    ...(row.task_id === null ? {} : { task_id: row.task_id }),
    ...(row.task_run_id === null ? {} : { task_run_id: row.task_run_id }),
    ...(row.error === null ? {} : { error: row.error }),
    ...(row.delivery_error === null ? {} : { delivery_error: row.delivery_error }),
    delivery_error_at: row.delivery_error_at === null ? null : iso(row.delivery_error_at),
    ...metadataToWire(row),
  }
}

/** A run that waits for a slot says until when. */
function metadataToWire({ metadata, wait_until: until }: RunRow): Pick<Run, 'metadata'> {
  if (metadata === null && until === null) return {}
  const stored = metadata === null ? {} : JSON.parse(metadata)
  return { metadata: until === null ? stored : { ...stored, waits_until: iso(until) } }
}

/** The stored metadata of a run with more members. */
export function mergedMetadata(
  stored: string | null,
  more: Readonly<Record<string, unknown>> | undefined,
): string | null {
  return more === undefined ? stored : JSON.stringify({ ...(stored === null ? {} : JSON.parse(stored)), ...more })
}
