import { shown } from '../../kernel/kit/text.js'
import { type Actor, iso, type PluginKernel, type Tx } from '../../kernel/plugin.js'
import type { FireLimit } from '../../schemas/automation.js'
import { durationMs } from '../../schemas/duration.js'
import { AutomationErrors } from './api.js'
import type { CursorStore } from './cursors.js'
import { decodeJob, JobKind, type JobRecord, jobProblem } from './job-kind.js'
import type { RunRow, RunStore } from './runs.js'
import { decide, Occurrences, occurrenceIds } from './schedule.js'

/** What came of claiming a job that looked due. */
export type Claim =
  /** Claimed: the run is `scheduled`, to be dispatched once this is durable. */
  | { readonly outcome: 'claimed'; readonly run: RunRow; readonly job: JobRecord }
  /** The occurrence is recorded as `canceled`, or was claimed before; the cursor went on. */
  | { readonly outcome: 'passed' }
  /** Nothing was due after all, or the job is gone, switched off or about to be projected anew. */
  | { readonly outcome: 'idle' }
  /** A backlog is run one after the other, and a run of it is going on. */
  | { readonly outcome: 'waiting' }

/** Limits that are the same for all jobs. */
export interface ClaimLimits {
  readonly timezone: string
  readonly maxConcurrent: number
  readonly fireLimit: FireLimit
  /** Epoch milliseconds: what was due before was missed. */
  readonly startedAt: () => number
}

/** Claims occurrences and reserves runs, each in one transaction, before any work is done. */
export class Claims {
  constructor(
    private readonly kernel: Pick<PluginKernel, 'db' | 'records' | 'clock' | 'ids'>,
    private readonly runs: RunStore,
    private readonly cursors: CursorStore,
    private readonly limits: ClaimLimits,
  ) {}

  /** Claims what is due of a job; resolves when that is durable. */
  due(job: string): Promise<Claim> {
    return this.kernel.db.tx(t => this.#due(t, job))
  }

  #due(t: Tx, id: string): Claim {
    const now = this.kernel.clock.now()
    const cursor = this.cursors.get(id)
    const planned = cursor?.next_run_at
    if (!cursor || planned === null || planned === undefined || planned > now) return { outcome: 'idle' }
    // The record decides, not what was projected from it: it may have changed a moment ago.
    const job = decodeJob(this.kernel.records.get(JobKind.name, id))
    const schedule = job?.spec.schedule
    if (!job || !schedule || !this.cursors.enabled(job) || this.cursors.hash(job) !== cursor.schedule_hash) {
      return { outcome: 'idle' }
    }
    const occurrences = new Occurrences(schedule, this.limits.timezone)
    const due = occurrences.corrected(planned, cursor.last_scheduled_at ?? undefined, now)
    if (due === undefined || due > now) {
      this.cursors.update(t, id, { next_run_at: due ?? null })
      return { outcome: 'passed' }
    }
    const decision = decide(schedule, this.limits.timezone, due, now, due < this.limits.startedAt())
    const open = this.runs.open(id)
    if (decision.backlog && open.length > 0) return { outcome: 'waiting' }

    const ids = occurrenceIds(id, decision.at)
    const misfire = decision.misfire ? { misfire_count: cursor.misfire_count + 1, last_misfire_at: now } : {}
    const advance = { next_run_at: decision.next ?? null, ...misfire }
    if (this.runs.get(ids.run)) {
      this.cursors.update(t, id, advance)
      return { outcome: 'passed' }
    }
    const limit = this.fireLimit(job, now)
    const skip = this.#skip(decision.skip, open.length > 0, limit)
    const resumes = skip?.reason === 'fire_limit' && limit.freeAt !== undefined ? limit.freeAt : undefined
    const next =
      resumes === undefined || decision.next === undefined || decision.next >= resumes
        ? decision.next
        : occurrences.after(decision.at, resumes - 1)
    // What has no run of its own is named by the run that stands for it.
    const metadata = {
      ...(skip ? { reason: skip.reason } : {}),
      ...(decision.at > due ? { missed_since: iso(due) } : {}),
      ...(next !== undefined && next !== decision.next ? { resumes_at: iso(next) } : {}),
    }
    const run = this.runs.insert(t, {
      id: ids.run,
      jobId: id,
      status: skip ? 'canceled' : 'scheduled',
      attempt: 1,
      fireId: ids.fire,
      scheduledAt: decision.at,
      scope: job.scope.id,
      cause: cursor.event ?? undefined,
      ...(Object.keys(metadata).length > 0 ? { metadata } : {}),
      ...(skip ? { error: `${skip.reason}: ${skip.text}` } : {}),
    })
    this.cursors.update(t, id, {
      ...advance,
      next_run_at: next ?? null,
      last_scheduled_at: decision.at,
      last_fire_id: ids.fire,
      ...(skip ? {} : { last_run_at: now }),
    })
    return skip ? { outcome: 'passed' } : { outcome: 'claimed', run, job }
  }

  #skip(
    skip: 'misfire_grace_exceeded' | undefined,
    overlaps: boolean,
    limit: { readonly freeAt?: number | undefined },
  ): { readonly reason: string; readonly text: string } | undefined {
    if (skip) return { reason: skip, text: 'it was due while the daemon was not running' }
    if (overlaps) return { reason: 'self_overlap', text: 'another run of this job is going on' }
    if (limit.freeAt !== undefined) return { reason: 'fire_limit', text: 'too many runs of this job lately' }
    if (this.full()) return { reason: 'concurrency_limit', text: 'automation.max_concurrent_jobs runs are going on' }
    return undefined
  }

  /**
   * Reserves another attempt after a run that failed. One for which there is no room is recorded as `canceled`, and the last;
   * undefined also when the job is gone.
   */
  retry(t: Tx, failed: RunRow): { readonly run: RunRow; readonly job: JobRecord } | undefined {
    const job = decodeJob(this.kernel.records.get(JobKind.name, failed.job_id))
    if (!job) return undefined
    const limit = this.fireLimit(job, this.kernel.clock.now())
    const skip = this.#skip(undefined, this.runs.open(job.id).length > 0, limit)
    const run = this.runs.insert(t, {
      id: this.kernel.ids.id('run'),
      jobId: job.id,
      status: skip ? 'canceled' : 'scheduled',
      attempt: failed.attempt + 1,
      fireId: failed.fire_id ?? undefined,
      scheduledAt: failed.scheduled_at ?? undefined,
      scope: job.scope.id,
      cause: this.runs.get(failed.id)?.event,
      metadata: { retry_of: failed.id, ...(skip ? { reason: skip.reason } : {}) },
      ...(skip ? { error: `${skip.reason}: ${skip.text}` } : {}),
    })
    if (skip) return undefined
    this.#ran(t, run)
    return { run, job }
  }

  #ran(t: Tx, { job_id: job, started_at: at }: RunRow): void {
    if (this.cursors.get(job)) this.cursors.update(t, job, { last_run_at: at })
  }

  /** Reserves a run by hand. Throws 404, 409 `concurrency_limit`, 409 `fire_limit`. */
  reserve(
    t: Tx,
    id: string,
    more: { readonly actor: Actor; readonly cause: string },
  ): { readonly run: RunRow; readonly job: JobRecord } {
    const record = this.kernel.records.get(JobKind.name, id)
    if (!record) throw AutomationErrors.job_not_found(`there is no job ${shown(id)}`)
    const job = decodeJob(record)
    if (!job || jobProblem(job.spec, job.scope))
      throw AutomationErrors.job_damaged(`the stored definition of job ${id} is not valid; write it anew or delete it`)
    if (this.full()) throw AutomationErrors.concurrency_limit()
    const limit = this.fireLimit(job, this.kernel.clock.now())
    if (limit.freeAt !== undefined) {
      throw AutomationErrors.fire_limit(
        `job ${job.spec.name} ran ${limit.max} times within ${limit.window}; wait, or raise its fire_limit`,
        { retryAfter: Math.max(1, Math.ceil((limit.freeAt - this.kernel.clock.now()) / 1000)) },
      )
    }
    const what = { id: this.kernel.ids.id('run'), jobId: id, status: 'scheduled', attempt: 1 } as const
    const run = this.runs.insert(t, { ...what, scope: job.scope.id, ...more })
    this.#ran(t, run)
    return { run, job }
  }

  /** A run of the job completed. */
  completed(t: Tx, job: string): void {
    this.cursors.resumed(t, job, true)
  }

  /** Are all slots taken? */
  full(): boolean {
    return this.runs.openCount() >= this.limits.maxConcurrent
  }

  /** The limit in force for a job, and when the next run may start if it is reached. */
  fireLimit(job: JobRecord, now: number): FireLimit & { readonly freeAt?: number | undefined } {
    const limit = job.spec.fire_limit ?? this.limits.fireLimit
    const window = durationMs(limit.window) ?? 0
    const { count, oldest } = this.runs.counted(job.id, window, now)
    return count < limit.max ? limit : { ...limit, freeAt: oldest + window }
  }
}
