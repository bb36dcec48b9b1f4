import { History } from '../../kernel/kit/history.js'
import { type EventType, iso, type PluginKernel, type SqlValue, type Tx } from '../../kernel/plugin.js'
import type { LastRun, Run } from '../../schemas/automation.js'
import type { EmitOptions, Events, StoredEvent } from '../events/api.js'
import { RunCreated, RunEnded, RunStarted, type RunStatus } from './api.js'

/** The transitions of a run. States without successors are final. */
export const RUN_TRANSITIONS = {
  scheduled: ['running', 'delegated', 'failed', 'canceled'],
  running: ['completed', 'failed', 'canceled'],
  delegated: [],
  completed: [],
  failed: [],
  canceled: [],
} as const satisfies Readonly<Record<RunStatus, readonly RunStatus[]>>

/** Does nothing follow this state? */
export const isFinal = (status: RunStatus) => RUN_TRANSITIONS[status].length === 0

/** Runs of one job that are kept: the newest so many, and of the older ones those that ran less than a week ago. */
const KEPT_RUNS = 1000
const KEPT_MS = 7 * 24 * 60 * 60_000
/** What never ran is not kept for its age, and what is not over is kept in any case. */
const KEPT_TIME =
  "CASE status WHEN 'canceled' THEN 0 WHEN 'scheduled' THEN 9e15 WHEN 'running' THEN 9e15 ELSE started_at END"

/** A run as it is stored; times in epoch milliseconds. */
export interface RunRow {
  readonly seq: number
  readonly id: string
  readonly job_id: string
  readonly status: RunStatus
  readonly attempt: number
  readonly fire_id: string | null
  readonly scheduled_at: number | null
  /** When it was claimed. */
  readonly started_at: number
  readonly ended_at: number | null
  readonly session_id: string | null
  readonly error: string | null
  readonly metadata: string | null
  /** Why it never got going, where it was claimed by schedule; then `error` says the same. */
  readonly delivery_error: string | null
  readonly delivery_error_at: number | null
  /** Workspace of the job, for events. */
  readonly scope: string | null
  /** The newest event about it: the cause of the next. */
  readonly event: string
}

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

/** A run to be written. One that is `canceled` from the start never was anything else: a skip. */
export interface NewRun {
  readonly id: string
  readonly jobId: string
  readonly status: 'scheduled' | 'canceled'
  readonly attempt: number
  readonly fireId?: string | undefined
  readonly scheduledAt?: number | undefined
  readonly error?: string | undefined
  readonly metadata?: Readonly<Record<string, unknown>> | undefined
  readonly scope?: string | undefined
  /** Id of what led to it. */
  readonly cause?: string | undefined
  readonly actor?: EmitOptions['actor']
}

/** Which runs a list shows. */
export interface RunFilter {
  readonly jobId?: string | undefined
  readonly status?: RunStatus | undefined
  readonly since?: number | undefined
  readonly until?: number | undefined
  readonly limit: number
}

/** The runs of all jobs. Every change is one row and one event in the caller's transaction. */
export class RunStore {
  readonly #history: History<RunRow>

  constructor(private readonly kernel: Pick<PluginKernel<{ events: typeof Events }>, 'db' | 'clock' | 'needs'>) {
    this.#history = new History(kernel.db, { table: 'automation_run', time: KEPT_TIME })
  }

  get(id: string): RunRow | undefined {
    return this.kernel.db.get<RunRow>('SELECT * FROM automation_run WHERE id = ?', [id])
  }

  /** Newest first. */
  list({ jobId, status, since, until, limit }: RunFilter): RunRow[] {
    const conditions: [string, SqlValue | undefined][] = [
      ['job_id = ?', jobId],
      ['status = ?', status],
      ['started_at >= ?', since],
      ['started_at <= ?', until],
    ]
    const given = conditions.filter((entry): entry is [string, SqlValue] => entry[1] !== undefined)
    const where = given.length > 0 ? `WHERE ${given.map(([sql]) => sql).join(' AND ')}` : ''
    const params = [...given.map(([, value]) => value), limit]
    return this.kernel.db.all<RunRow>(`SELECT * FROM automation_run ${where} ORDER BY seq DESC LIMIT ?`, params)
  }

  /** Runs that are claimed or going on, of one job or of all. */
  open(jobId?: string): RunRow[] {
    const sql = "SELECT * FROM automation_run WHERE status IN ('scheduled', 'running')"
    return jobId === undefined
      ? this.kernel.db.all<RunRow>(`${sql} ORDER BY seq`)
      : this.kernel.db.all<RunRow>(`${sql} AND job_id = ? ORDER BY seq`, [jobId])
  }

  openCount(): number {
    const sql = "SELECT count(*) FROM automation_run WHERE status IN ('scheduled', 'running')"
    return Number(this.kernel.db.row(sql)?.[0] ?? 0)
  }

  /** Count for the fire limit: runs claimed in (now - window, now] that were not canceled. */
  counted(jobId: string, window: number, now: number): { readonly count: number; readonly oldest: number } {
    // Later ones are there when the clock was set back; they must not block the job until their time comes again.
    const row = this.kernel.db.row(
      `SELECT count(*), min(started_at) FROM automation_run
       WHERE job_id = ? AND started_at > ? AND started_at <= ? AND status <> 'canceled'`,
      [jobId, now - window, now],
    )
    return { count: Number(row?.[0] ?? 0), oldest: Number(row?.[1] ?? 0) }
  }

  /** Runs that failed and are the latest of their job, of jobs that are there; newest first. */
  latestFailures(limit: number): RunRow[] {
    return this.kernel.db.all<RunRow>(
      `SELECT r.* FROM automation_run r WHERE r.status = 'failed'
         AND EXISTS (SELECT 1 FROM automation_cursor WHERE job = r.job_id)
         AND NOT EXISTS
           (SELECT 1 FROM automation_run WHERE job_id = r.job_id AND seq > r.seq AND status <> 'canceled')
       ORDER BY r.seq DESC LIMIT ?`,
      [limit],
    )
  }

  /** Writes a new run and its event. */
  insert(t: Tx, run: NewRun): RunRow {
    const now = this.kernel.clock.now()
    const ended = run.status === 'canceled'
    const event = this.#emit(t, RunCreated, run.id, run.jobId, run.status, run, run.cause, run.actor)
    t.run(
      `INSERT INTO automation_run (id, job_id, status, attempt, fire_id, scheduled_at, started_at, ended_at, error,
         metadata, scope, event) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      [
        run.id,
        run.jobId,
        run.status,
        run.attempt,
        run.fireId ?? null,
        run.scheduledAt ?? null,
        now,
        ended ? now : null,
        run.error ?? null,
        run.metadata ? JSON.stringify(run.metadata) : null,
        run.scope ?? null,
        ended ? this.#emit(t, RunEnded, run.id, run.jobId, run.status, run, event) : event,
      ],
    )
    if (ended) this.#prune(t, run.jobId)
    return this.get(run.id) as RunRow
  }

  /** Moves a run to its next state and tells of it. Throws when {@link RUN_TRANSITIONS} does not foresee it. */
  move(
    t: Tx,
    id: string,
    to: RunStatus,
    more: { readonly sessionId?: string; readonly error?: string | undefined } = {},
  ): RunRow {
    const before = this.get(id)
    if (!before || !(RUN_TRANSITIONS[before.status] as readonly RunStatus[]).includes(to)) {
      throw new Error(`run ${id} cannot become ${to}: it is ${before?.status ?? 'gone'}`)
    }
    const sessionId = more.sessionId ?? before.session_id ?? undefined
    const type = isFinal(to) ? RunEnded : RunStarted
    const what = { sessionId, error: more.error, scope: before.scope ?? undefined }
    const event = this.#emit(t, type, id, before.job_id, to, what, before.event)
    const now = this.kernel.clock.now()
    const undelivered = before.status === 'scheduled' && to === 'failed' && before.fire_id !== null
    t.run(
      `UPDATE automation_run SET status = ?, session_id = ?, error = ?, ended_at = ?, event = ?, delivery_error = ?,
         delivery_error_at = ? WHERE id = ?`,
      [
        to,
        sessionId ?? null,
        more.error ?? null,
        isFinal(to) ? now : null,
        event,
        undelivered ? (more.error ?? null) : null,
        undelivered ? now : null,
        id,
      ],
    )
    if (isFinal(to)) this.#prune(t, before.job_id)
    return this.get(id) as RunRow
  }

  #emit(
    t: Tx,
    type: EventType<{
      id: string
      job_id: string
      status: string
      session_id?: string | undefined
      error?: string | undefined
    }>,
    id: string,
    jobId: string,
    status: RunStatus,
    what: { sessionId?: string | undefined; error?: string | undefined; scope?: string | undefined },
    cause: StoredEvent['cause'],
    actor?: NewRun['actor'],
  ): string {
    const payload = {
      id,
      job_id: jobId,
      status,
      ...(what.sessionId === undefined ? {} : { session_id: what.sessionId }),
      ...(what.error === undefined ? {} : { error: what.error }),
    }
    return this.kernel.needs.events.emit(t, type, payload, {
      cause,
      scope: what.scope,
      subject: id,
      ...(actor ? { actor } : {}),
    }).id
  }

  #prune(t: Tx, jobId: string): void {
    const since = this.kernel.clock.now() - KEPT_MS
    this.#history.prune(t, { job_id: jobId }, { newest: KEPT_RUNS, since })
  }
}

/** What a job says of its newest run. */
export function lastRunToWire({ id, status, error, started_at: at }: RunRow): LastRun {
  return { id, status, started_at: iso(at), ...(error === null ? {} : { error }) }
}

/** A run as the contract has it. */
export function runToWire(row: RunRow): Run {
  return {
    id: row.id,
    job_id: row.job_id,
    status: row.status,
    attempt: row.attempt,
    started_at: iso(row.started_at),
    ended_at: row.ended_at === null ? null : iso(row.ended_at),
    scheduled_at: row.scheduled_at === null ? null : iso(row.scheduled_at),
    ...(row.fire_id === null ? {} : { fire_id: row.fire_id }),
    ...(row.session_id === null ? {} : { session_id: row.session_id }),
    ...(row.error === null ? {} : { error: row.error }),
    ...(row.delivery_error === null ? {} : { delivery_error: row.delivery_error }),
    delivery_error_at: row.delivery_error_at === null ? null : iso(row.delivery_error_at),
    ...(row.metadata === null ? {} : { metadata: JSON.parse(row.metadata) }),
  }
}
