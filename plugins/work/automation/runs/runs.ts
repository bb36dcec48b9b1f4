import type { EventType, Tx } from '../../../../kernel/plugin.js'
import type { EmitOptions, StoredEvent } from '../../../platform/events/api.js'
import { RunCreated, RunEnded, RunStarted, type RunStatus } from '../api.js'
import { archivedRuns } from '../archive/table.js'
import type { K } from '../needs.js'
import { EveryNth } from './every-nth.js'
import type { LeftSessions } from './left-sessions.js'
import type { RunBook, SlotBook } from './room.js'
import { queryRuns, type RunFilter } from './run-query.js'
import {
  columnOf,
  INSERT_RUN,
  isFinal,
  isOf,
  mergedMetadata,
  RUN_TRANSITIONS,
  type RunOf,
  type RunRow,
  runOf,
  runs,
  valuesOf,
} from './run-row.js'

/** Retention per definition: the newest KEPT_RUNS runs, and older ones for KEPT_MS. */
export const KEPT_RUNS = 1000
export const KEPT_MS = 7 * 24 * 60 * 60_000
/** Runs of a deleted definition removed per transaction; the rest is removed a day later. */
const FORGOTTEN = 2000
/** Canceled runs are not kept for their age; open runs are always kept. */
const KEPT_TIME =
  "CASE status WHEN 'canceled' THEN 0 WHEN 'scheduled' THEN 9e15 WHEN 'running' THEN 9e15 ELSE started_at END"

/** Number of runs with a slot. */
export const OPEN_COUNT =
  "SELECT count(*) FROM automation_run WHERE status IN ('scheduled', 'running') AND wait_until IS NULL"

/** Prune once per this many ended runs of a definition, so up to that many more than {@link KEPT_RUNS} may exist. */
const PRUNED_EVERY = 32

/** {@link RunStore.counted} and whether a run of a trigger exists. */
const countsSql = (column: 'job_id' | 'trigger_id') => `SELECT count(*), min(started_at),
    EXISTS (SELECT 1 FROM automation_run WHERE id = ?)
  FROM automation_run
  WHERE ${isOf(column)} AND started_at > ? AND started_at <= ? AND status <> 'canceled' AND wait_until IS NULL`

/** A run changed after it was read. */
export class RunChanged extends Error {}

/** A run to insert. A run inserted as `canceled` is a skip. */
export type NewRun = RunOf & {
  readonly id: string
  readonly status: 'scheduled' | 'canceled'
  readonly attempt: number
  readonly fireId?: string | undefined
  readonly scheduledAt?: number | undefined
  /** End of its wait for a slot. */
  readonly waitUntil?: number | undefined
  readonly error?: string | undefined
  readonly metadata?: Readonly<Record<string, unknown>> | undefined
  readonly scope?: string | undefined
  /** Id of the event or request that caused it. */
  readonly cause?: string | undefined
  readonly actor?: EmitOptions['actor']
  readonly prompt?: string | undefined
  readonly depth?: number | undefined
}

/** The runs of all jobs and triggers. Every change writes one row and one event in the caller's transaction. */
export class RunStore implements RunBook {
  readonly #pruning = new EveryNth(PRUNED_EVERY)
  /** The last count, and the slots taken since: at least the number of open runs, also when a transaction is undone. */
  #mostOpen = Number.POSITIVE_INFINITY
  /** Called after the durable end of a run with the ID of its job; empty for the run of a trigger. */
  slotFreed: (job: string) => void = () => {}

  constructor(
    private readonly kernel: K,
    private readonly left?: Pick<LeftSessions, 'note'>,
  ) {}

  get(id: string): RunRow | undefined {
    return runs.get(this.kernel.db, { id })
  }

  /** Runs of the catalog, newest first; the archive has older runs of jobs. */
  list(filter: RunFilter): RunRow[] {
    return queryRuns(this.kernel.db, filter)
  }

  /** Scheduled and running runs, of one job or of all. */
  open(jobId?: string): RunRow[] {
    const open = "WHERE status IN ('scheduled', 'running')"
    return jobId === undefined
      ? runs.query(this.kernel.db, `${open} ORDER BY seq`)
      : runs.query(this.kernel.db, `${open} AND job_id = ? ORDER BY seq`, [jobId])
  }

  /** Whether the run exists, in the catalog or in the archive. */
  has(run: string): boolean {
    const { db } = this.kernel
    return (
      db.row('SELECT 1 FROM automation_run WHERE id = ?', [run]) !== undefined ||
      archivedRuns.segmentOf(db, run) !== undefined
    )
  }

  openOf(job: string): number {
    const sql = "SELECT count(*) FROM automation_run WHERE job_id = ? AND status IN ('scheduled', 'running')"
    return Number(this.kernel.db.row(sql, [job])?.[0] ?? 0)
  }

  openCount(enough = 0): number {
    if (this.#mostOpen >= enough) this.#mostOpen = Number(this.kernel.db.row(OPEN_COUNT)?.[0] ?? 0)
    return this.#mostOpen
  }

  /** A run takes a slot. */
  slotTaken(): void {
    this.#mostOpen++
  }

  /** The counts that limit a claim. `isKnown`: the run is in the catalog, where all runs of triggers stay. */
  claimed(of: RunOf, window: number, now: number, run = ''): SlotBook & { readonly isKnown: boolean } {
    const [column, id] = columnOf(of)
    const row = this.kernel.db.row(countsSql(column), [run, id, now - window, now])
    const [count = 0, oldest = 0, isKnown = 0] = (row ?? []).map(Number)
    return { counted: () => ({ count, oldest }), openCount: enough => this.openCount(enough), isKnown: isKnown === 1 }
  }

  isAnyWaiting(): boolean {
    return this.kernel.db.row('SELECT 1 FROM automation_run WHERE wait_until IS NOT NULL') !== undefined
  }

  /** The newest run of this session. */
  ofSession(session: string): RunRow | undefined {
    return runs.query(this.kernel.db, 'WHERE session_id = ? ORDER BY seq DESC LIMIT 1', [session])[0]
  }

  /** Runs that count toward the fire limit. */
  counted(of: RunOf, window: number, now: number): { readonly count: number; readonly oldest: number } {
    const [column, id] = columnOf(of)
    // Runs in the future exist when the clock was set back; they must not block the definition until then.
    const row = this.kernel.db.row(
      `SELECT count(*), min(started_at) FROM automation_run
       WHERE ${isOf(column)} AND started_at > ? AND started_at <= ? AND status <> 'canceled' AND wait_until IS NULL`,
      [id, now - window, now],
    )
    return { count: Number(row?.[0] ?? 0), oldest: Number(row?.[1] ?? 0) }
  }

  /** Claim times of the runs that {@link counted} counts, ascending. */
  started(of: RunOf, window: number, now: number): number[] {
    const [column, id] = columnOf(of)
    const sql = `SELECT started_at FROM automation_run
      WHERE ${isOf(column)} AND started_at > ? AND started_at <= ? AND status <> 'canceled' AND wait_until IS NULL
      ORDER BY started_at`
    return this.kernel.db.rows(sql, [id, now - window, now]).map(([at]) => Number(at))
  }

  /** Ids of runs scheduled in the future: they were claimed before the clock was set back. */
  scheduledAfter(now: number): string[] {
    return this.kernel.db.rows('SELECT id FROM automation_run WHERE scheduled_at > ?', [now]).map(([id]) => String(id))
  }

  /** Usual duration of a run in milliseconds: the median of the latest completed runs. */
  usualMs(of: RunOf): number | undefined {
    const [column, id] = columnOf(of)
    const sql = `SELECT ended_at - started_at FROM automation_run WHERE ${isOf(column)} AND status = 'completed'
      AND ended_at >= started_at ORDER BY seq DESC LIMIT 20`
    const took = this.kernel.db.rows(sql, [id]).map(([ms]) => Number(ms))
    return took.toSorted((a, b) => a - b)[took.length >> 1]
  }

  /** Inserts a run and emits its event. */
  insert(t: Tx, run: NewRun): RunRow {
    const now = this.kernel.clock.now()
    const ended = run.status === 'canceled'
    this.slotTaken()
    const event = this.#emit(t, RunCreated, run.id, run, run.status, run, run.cause, run.actor)
    const row: Omit<RunRow, 'seq'> = {
      id: run.id,
      job_id: 'jobId' in run ? run.jobId : '',
      trigger_id: 'triggerId' in run ? run.triggerId : null,
      status: run.status,
      attempt: run.attempt,
      fire_id: run.fireId ?? null,
      scheduled_at: run.scheduledAt ?? null,
      started_at: now,
      wait_until: run.waitUntil ?? null,
      ended_at: ended ? now : null,
      session_id: null,
      task_id: null,
      task_run_id: null,
      error: run.error ?? null,
      metadata: run.metadata ? JSON.stringify(run.metadata) : null,
      delivery_error: null,
      delivery_error_at: null,
      scope: run.scope ?? null,
      event: ended ? this.#emit(t, RunEnded, run.id, run, run.status, run, event) : event,
      prompt: ended ? null : (run.prompt ?? null),
      depth: run.depth ?? 0,
    }
    // Read back only the seq: reading the whole row would cost as much as writing it.
    const insertedRow = t.row(INSERT_RUN, valuesOf(row))
    if (ended) this.#prune(t, run)
    return { seq: Number(insertedRow?.[0]), ...row }
  }

  /**
   * Moves a run to its next state and emits the event. Throws when {@link RUN_TRANSITIONS} does not allow it.
   * @param run the id, or the row as it was read; throws {@link RunChanged} when the run has changed since
   */
  move(
    t: Tx,
    run: string | RunRow,
    to: RunStatus,
    more: {
      readonly sessionId?: string
      readonly error?: string | undefined
      readonly task?: { readonly id: string; readonly run: string }
      readonly metadata?: Readonly<Record<string, unknown>>
    } = {},
  ): RunRow {
    const id = typeof run === 'string' ? run : run.id
    const before = typeof run === 'string' ? this.get(id) : run
    if (!before || !(RUN_TRANSITIONS[before.status] as readonly RunStatus[]).includes(to)) {
      throw new Error(`run ${id} cannot become ${to}: it is ${before?.status ?? 'deleted'}`)
    }
    const sessionId = more.sessionId ?? before.session_id ?? undefined
    const type = isFinal(to) ? RunEnded : RunStarted
    const what = { sessionId, error: more.error, scope: before.scope ?? undefined }
    const event = this.#emit(t, type, id, runOf(before), to, what, before.event)
    const now = this.kernel.clock.now()
    const undelivered = before.status === 'scheduled' && to === 'failed' && before.fire_id !== null
    const change = {
      status: to,
      session_id: sessionId ?? null,
      error: more.error ?? null,
      ended_at: isFinal(to) ? now : null,
      wait_until: null,
      metadata: mergedMetadata(before.metadata, more.metadata),
      event,
      delivery_error: undelivered ? (more.error ?? null) : null,
      delivery_error_at: undelivered ? now : null,
      prompt: isFinal(to) ? null : before.prompt,
      task_id: more.task?.id ?? null,
      task_run_id: more.task?.run ?? null,
    }
    // Every change has an event of its own.
    if (runs.update(t, { seq: before.seq, event: before.event }, change) === 0)
      throw new RunChanged(`run ${id} changed`)
    if (isFinal(to)) {
      this.#prune(t, runOf(before))
      this.kernel.db.onDurable(t, () => this.slotFreed(before.job_id))
    }
    return { ...before, ...change }
  }

  #emit(
    t: Tx,
    type: EventType<{
      id: string
      job_id?: string | undefined
      trigger_id?: string | undefined
      status: string
      session_id?: string | undefined
      error?: string | undefined
    }>,
    id: string,
    of: RunOf,
    status: RunStatus,
    what: { sessionId?: string | undefined; error?: string | undefined; scope?: string | undefined },
    cause: StoredEvent['cause'],
    actor?: NewRun['actor'],
  ): string {
    const payload = {
      id,
      ...('jobId' in of ? { job_id: of.jobId } : { trigger_id: of.triggerId }),
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

  /** The jobs and triggers that have runs. */
  definitions(): RunOf[] {
    const ids = (column: string) =>
      this.kernel.db
        .rows(`SELECT DISTINCT ${column} FROM automation_run WHERE ${column} > ''`)
        .map(([id]) => String(id))
    return [...ids('job_id').map(jobId => ({ jobId })), ...ids('trigger_id').map(triggerId => ({ triggerId }))]
  }

  /** Removes the ended runs of a deleted definition once they are old enough, including the newest ones. */
  forget(t: Tx, of: RunOf): void {
    const [column, id] = columnOf(of)
    const where = `seq IN (SELECT seq FROM automation_run WHERE ${isOf(column, '?1')} AND (${KEPT_TIME}) < ?2 LIMIT ${FORGOTTEN})`
    const params = [id, this.kernel.clock.now() - KEPT_MS]
    this.left?.note(t, where, params)
    t.run(`DELETE FROM automation_run WHERE ${where}`, params)
  }

  #prune(t: Tx, of: RunOf): void {
    const [column, id] = columnOf(of)
    // Pruning scans all kept runs of the definition.
    if (!this.#pruning.due(id)) return
    const beyond = `SELECT seq FROM automation_run WHERE ${isOf(column, '?1')} ORDER BY seq DESC LIMIT 1 OFFSET ${KEPT_RUNS}`
    const where = `${isOf(column, '?1')} AND seq <= (${beyond}) AND (${KEPT_TIME}) < ?2`
    const params = [id, this.kernel.clock.now() - KEPT_MS]
    this.left?.note(t, where, params)
    t.run(`DELETE FROM automation_run WHERE ${where}`, params)
  }
}
