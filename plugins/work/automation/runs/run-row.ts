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

/** Only runs of jobs are in the indexes by job, and SQLite uses a partial index only where its condition is repeated. */
export const OF_JOBS = "job_id > ''"

/** The column and id that select the runs of a definition. */
export const columnOf = (of: RunOf): ['job_id' | 'trigger_id', string] =>
  'jobId' in of ? ['job_id', of.jobId] : ['trigger_id', of.triggerId]

/** A condition with one parameter, the id, that selects the runs of a definition. */
export const isOf = (column: 'job_id' | 'trigger_id', id = '?'): string =>
  column === 'job_id' ? `job_id = ${id} AND ${OF_JOBS}` : `trigger_id = ${id}`

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
