import { column, type RowOf, table } from '../../../kernel/kit/table.js'
import type { SqlValue, StoredRecord, Tx } from '../../../kernel/plugin.js'
import { type CatchUpPolicy, type Schedule, SchedulerState } from '../../../schemas/automation.js'
import { JobKind, type JobRecord, jobProblem } from './job-kind.js'
import type { K } from './needs.js'
import { Overlays } from './overlays.js'
import { isoOrNull } from './runs/run-wire.js'
import { Occurrences, scheduleHash } from './schedule.js'

const { text, integer, flag, time } = column

/** Scheduler state of each job; times in epoch milliseconds. */
export const cursors = table('automation_cursor', {
  job: text(),
  /** The value after the overlay is applied. */
  enabled: flag(),
  record_version: integer(),
  schedule_hash: text(),
  /** When it is due; null when it is not registered with the scheduler. */
  next_run_at: time().nullable(),
  last_run_at: time().nullable(),
  last_scheduled_at: time().nullable(),
  last_fire_id: text().nullable(),
  catch_up_policy: text<CatchUpPolicy>().nullable(),
  misfire_grace_seconds: integer().nullable(),
  consecutive_resume_failures: integer(),
  last_misfire_at: time().nullable(),
  misfire_count: integer(),
  /** Id of the newest event about the record of the job: the cause of its runs. */
  event: text().nullable(),
  updated_at: time(),
  /** {@link nameKey} of the record. */
  name_key: text().nullable(),
  /** The default time zone used to compute the cursor. */
  timezone: text().nullable(),
})
export type CursorRow = RowOf<typeof cursors>

export const cursorTables = `CREATE TABLE automation_cursor (
    job TEXT NOT NULL UNIQUE, enabled INTEGER NOT NULL, record_version INTEGER NOT NULL, schedule_hash TEXT NOT NULL,
    next_run_at INTEGER, last_run_at INTEGER, last_scheduled_at INTEGER, last_fire_id TEXT, catch_up_policy TEXT,
    misfire_grace_seconds INTEGER, consecutive_resume_failures INTEGER NOT NULL DEFAULT 0, last_misfire_at INTEGER,
    misfire_count INTEGER NOT NULL DEFAULT 0, event TEXT, updated_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX automation_cursor_due ON automation_cursor (next_run_at) WHERE next_run_at IS NOT NULL;
  CREATE TABLE automation_overlay (
    job TEXT NOT NULL UNIQUE, enabled INTEGER NOT NULL, updated_at INTEGER NOT NULL
  ) STRICT;`

/** Columns checked at startup before a cursor is reused, and the name index. Null when written by an earlier version. */
export const bootColumns = `ALTER TABLE automation_cursor ADD COLUMN name_key TEXT;
  ALTER TABLE automation_cursor ADD COLUMN timezone TEXT;
  CREATE INDEX automation_cursor_name ON automation_cursor (name_key);`

/** Indexes for the status counts and for failed runs (see `NoteworthyRuns`). */
export const countIndexes = `CREATE INDEX automation_cursor_off ON automation_cursor (enabled) WHERE enabled = 0;
  CREATE INDEX automation_run_failed ON automation_run (seq) WHERE status = 'failed';`

/** Columns that a claim changes. */
export type CursorChange = Partial<
  Pick<
    CursorRow,
    'next_run_at' | 'last_run_at' | 'last_scheduled_at' | 'last_fire_id' | 'last_misfire_at' | 'misfire_count'
  >
>

/** The stored name of a definition. */
export const nameOf = ({ spec }: Pick<StoredRecord, 'spec'>) => (spec as { name?: string } | null)?.name ?? ''

/** Names are unique within a scope. */
export const nameKey = (record: Pick<StoredRecord, 'scope' | 'spec'>) =>
  JSON.stringify([record.scope.id ?? '', nameOf(record)])

/** Members of a cursor whose job has not run yet. */
const UNRUN = { last_run_at: null, last_scheduled_at: null, last_fire_id: null, consecutive_resume_failures: 0 }

/** One durable cursor per job. */
export class CursorStore {
  constructor(
    private readonly kernel: K,
    private readonly timezone: string,
    readonly overlays = new Overlays(kernel, 'automation_overlay', JobKind.name),
  ) {}

  get(job: string): CursorRow | undefined {
    return cursors.get(this.kernel.db, { job })
  }

  /** When the job is due; asked several times for each run. */
  dueAt(job: string): number | undefined {
    const [at] = this.kernel.db.row('SELECT next_run_at FROM automation_cursor WHERE job = ?', [job]) ?? []
    return typeof at === 'number' ? at : undefined
  }

  /** Whether the job is enabled, with its overlay applied. Pass `overlays` to avoid one query per job. */
  enabled(record: JobRecord, overlays?: ReadonlyMap<string, boolean>): boolean {
    return this.overlays.enabled(record, overlays)
  }

  hash(record: JobRecord): string {
    return scheduleHash(record.spec.schedule ?? undefined, this.timezone)
  }

  /**
   * Updates the cursor of a record. A changed or re-enabled schedule restarts from now; an unchanged cursor is kept, even
   * when it is overdue. Throws when the job is invalid. Returns when the job is due.
   */
  project(t: Tx, record: JobRecord, overlays: ReadonlyMap<string, boolean>): number | undefined {
    const before = this.get(record.id)
    const enabled = this.enabled(record, overlays)
    const hash = this.hash(record)
    if (
      before?.record_version === record.version &&
      before.enabled === enabled &&
      before.schedule_hash === hash &&
      before.name_key !== null &&
      before.timezone === this.timezone
    ) {
      return before.next_run_at ?? undefined
    }
    const problem = jobProblem(record.spec, record.scope)
    if (problem) throw new Error(problem.text)
    const now = this.kernel.clock.now()
    const schedule = record.spec.schedule
    const fresh = before?.schedule_hash !== hash
    const next =
      !enabled || !schedule ? null : fresh || !before.enabled ? this.#first(schedule, now) : before.next_run_at
    const missed = enabled && next === null && schedule?.mode === 'at' && this.#missed(schedule, before, fresh)
    const event = this.kernel.needs.events.latest({ name: 'record.put', subject: `${JobKind.name}/${record.id}` })
    const values = {
      enabled,
      record_version: record.version,
      schedule_hash: hash,
      next_run_at: next,
      catch_up_policy: schedule && schedule.mode !== 'at' ? (schedule.catch_up_policy ?? 'skip_missed') : null,
      misfire_grace_seconds: schedule?.misfire_grace_seconds ?? null,
      misfire_count: (before?.misfire_count ?? 0) + (missed ? 1 : 0),
      last_misfire_at: missed ? now : (before?.last_misfire_at ?? null),
      event: event?.id ?? before?.event ?? null,
      updated_at: now,
      name_key: nameKey(record),
      timezone: this.timezone,
    }
    if (before) cursors.update(t, { job: record.id }, values)
    else cursors.insert(t, { job: record.id, ...UNRUN, ...values })
    return next ?? undefined
  }

  /** Jobs whose cursor was written in the future: the clock has been set back since. */
  ahead(): string[] {
    const rows = this.kernel.db.rows('SELECT job FROM automation_cursor WHERE enabled = 1 AND updated_at > ?', [
      this.kernel.clock.now(),
    ])
    return rows.map(([job]) => String(job))
  }

  /** Jobs that are due. */
  overdue(): string[] {
    const rows = this.kernel.db.rows('SELECT job FROM automation_cursor WHERE enabled = 1 AND next_run_at <= ?', [
      this.kernel.clock.now(),
    ])
    return rows.map(([job]) => String(job))
  }

  /**
   * Replans a job from now. Otherwise a clock that was once ahead would silence the job until that time. Occurrences that were
   * already claimed are skipped when they recur, because their run IDs are the same.
   */
  replan(t: Tx, record: JobRecord): void {
    const cursor = this.get(record.id)
    const schedule = record.spec.schedule
    if (!cursor || !schedule || cursor.schedule_hash !== this.hash(record)) return
    const next = new Occurrences(schedule, this.timezone).again(
      cursor.next_run_at ?? undefined,
      this.kernel.clock.now(),
    )
    this.update(t, record.id, { next_run_at: next ?? null })
  }

  update(t: Tx, job: string, change: CursorChange): void {
    cursors.update(t, { job }, { ...change, updated_at: this.kernel.clock.now() })
  }

  /** Counts consecutive runs that failed because of a daemon restart; any other run resets the counter. */
  resumed(t: Tx, job: string, well: boolean): void {
    t.run(
      `UPDATE automation_cursor SET consecutive_resume_failures = ${well ? '0' : 'consecutive_resume_failures + 1'}
       WHERE job = ? ${well ? 'AND consecutive_resume_failures > 0' : ''}`,
      [job],
    )
  }

  remove(t: Tx, job: string): void {
    cursors.delete(t, { job })
    this.overlays.remove(t, job)
  }

  /**
   * The jobs that have a cursor, with the record version it was computed from, or -1 when it must be recomputed: the default
   * time zone changed, or the job was enabled or disabled and the daemon stopped before the cursor was updated.
   */
  projected(): ReadonlyMap<string, number> {
    const [jobs = [], versions = []] = this.#columns(
      `SELECT json_group_array(job), json_group_array(CASE WHEN name_key IS NOT NULL AND timezone = ? THEN record_version
         ELSE -1 END) FROM automation_cursor`,
      [this.timezone],
    ) as [string[]?, number[]?]
    const projected = new Map(jobs.map((job, i) => [job, versions[i] as number]))
    for (const [job, enabled] of this.overlays.all())
      if (projected.has(job) && this.get(job)?.enabled !== enabled) projected.set(job, -1)
    return projected
  }

  /** Number of jobs whose next occurrence is due from `from` up to `to`, epoch milliseconds. */
  countDue(from: number, to: number): number {
    const sql = 'SELECT count(*) FROM automation_cursor WHERE next_run_at >= ? AND next_run_at < ?'
    return Number(this.kernel.db.row(sql, [from, to])?.[0])
  }

  /** Registered jobs with their due times. */
  registered(): [job: string, at: number][] {
    const [jobs = [], times = []] = this.#columns(
      `SELECT json_group_array(job), json_group_array(next_run_at) FROM automation_cursor WHERE next_run_at IS NOT NULL`,
    ) as [string[]?, number[]?]
    return jobs.map((job, i) => [job, times[i] as number])
  }

  /** Returns each column as one JSON text: reading 100,000 rows one by one takes twice as long. */
  #columns(sql: string, params: readonly SqlValue[] = []): unknown[] {
    return (this.kernel.db.row(sql, params) ?? []).map(text => JSON.parse(String(text)))
  }

  /** Jobs that had this name when their cursor was computed. */
  named(key: string): string[] {
    return this.kernel.db
      .rows('SELECT job FROM automation_cursor WHERE name_key = ?', [key])
      .map(([job]) => String(job))
  }

  totals(): { readonly total: number; readonly enabled: number } {
    // Two statements answered by an index; a single sum would scan every row.
    const count = (where: string) => Number(this.kernel.db.row(`SELECT count(*) FROM automation_cursor ${where}`)?.[0])
    const total = count('')
    return { total, enabled: total - count('WHERE enabled = 0') }
  }

  /** The cursors with the earliest due times. */
  upcoming(limit: number): CursorRow[] {
    const due = 'WHERE next_run_at IS NOT NULL ORDER BY next_run_at, rowid LIMIT +?'
    return cursors.query(this.kernel.db, due, [limit])
  }

  /** An `at` time that has passed when the job is created or enabled is a misfire, unless it ran or was counted before. */
  #missed({ time }: Schedule, before: CursorRow | undefined, fresh: boolean): boolean {
    const instant = Date.parse(time ?? '')
    if (before?.last_scheduled_at === instant) return false
    return fresh || (before?.enabled === false && (before.last_misfire_at ?? Number.NEGATIVE_INFINITY) < instant)
  }

  #first(schedule: Schedule, now: number): number | null {
    return new Occurrences(schedule, this.timezone).first(now) ?? null
  }
}

/** The wire form of a cursor. */
export const cursorToWire = (row: CursorRow): SchedulerState =>
  cursors.wire(row, SchedulerState, {
    job_id: row.job,
    registered: row.next_run_at !== null,
    next_run_at: isoOrNull(row.next_run_at),
    last_run_at: isoOrNull(row.last_run_at),
    last_scheduled_at: isoOrNull(row.last_scheduled_at),
    last_misfire_at: isoOrNull(row.last_misfire_at),
  })
