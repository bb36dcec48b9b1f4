import { shown } from '../../../kernel/kit/text.js'
import type { Actor, Clock, Tx } from '../../../kernel/plugin.js'
import { AutomationErrors, type RunAbout } from './api.js'
import type { CursorStore } from './cursors.js'
import type { DefinitionRecord } from './definitions.js'
import { decodeJob, JobKind, type JobRecord, jobProblem } from './job-kind.js'
import { admitOccurrence, planOccurrence } from './jobs/plan.js'
import type { K } from './needs.js'
import { type Limits, limitOf, retryDelay, type Skip, type SlotBook, skipOf, slotSkip, windowOf } from './runs/room.js'
import { workspaceOf } from './runs/run-place.js'
import { type RunOf, type RunRow, runOf } from './runs/run-row.js'
import type { RunStore } from './runs/runs.js'
import type { WaitingRows } from './runs/waiting-rows.js'
import { decodeTrigger, TriggerKind, type TriggerRecord } from './triggers/trigger-kind.js'

/** The result of claiming a job that looked due. */
export type Claim =
  /** The run is `scheduled` and is dispatched once the transaction is durable. */
  | { readonly outcome: 'claimed'; readonly run: RunRow; readonly job: JobRecord }
  /** The run is `scheduled` and waits for a slot. */
  | { readonly outcome: 'queued' }
  /** The occurrence was recorded as `canceled`, or claimed before; the cursor advanced. */
  | { readonly outcome: 'passed' }
  /** Nothing was due, or the job was deleted, disabled or changed. */
  | { readonly outcome: 'idle' }
  /** A backlog is replayed and its previous run is still open. */
  | { readonly outcome: 'waiting' }

/** The result for an occurrence that waited for a slot. */
export type Admission =
  /** It has a slot and is dispatched once the transaction is durable. */
  | { readonly outcome: 'admitted'; readonly run: RunRow; readonly job: JobRecord }
  | { readonly outcome: 'canceled'; readonly run: RunRow }

/** Maximum number of waiting occurrences canceled per transaction. */
const CANCELED_AT_ONCE = 200

/** One fire of a trigger. The id is derived from its cause, so that it can be claimed only once. */
export interface TriggerFire {
  readonly id: string
  readonly prompt: string
  readonly cause?: string | undefined
  readonly actor?: Actor | undefined
  readonly depth: number
  readonly metadata: Readonly<Record<string, unknown>>
  /** Reason to skip it regardless of the limits. */
  readonly skip?: Skip | undefined
  /** {@link Claims.room} was already checked for this run in this transaction. */
  readonly hasRoom?: boolean | undefined
}

/** Limits and start time of the daemon. */
export interface ClaimLimits extends Limits {
  /** Epoch milliseconds: occurrences due before were missed. */
  readonly startedAt: () => number
}

/** Claims occurrences and reserves runs, each in one transaction before any work starts. */
export class Claims {
  constructor(
    private readonly kernel: K,
    private readonly runs: RunStore,
    private readonly cursors: CursorStore,
    private readonly limits: ClaimLimits,
    private readonly rows: WaitingRows,
  ) {}

  /** Claims the due occurrence of a job; resolves when the claim is durable. */
  due(job: string): Promise<Claim> {
    return this.kernel.db.tx(t => this.#due(t, job))
  }

  #due(t: Tx, id: string): Claim {
    const now = this.kernel.clock.now()
    const cursor = this.cursors.get(id)
    if (!cursor || cursor.next_run_at === null || cursor.next_run_at > now) return { outcome: 'idle' }
    // Read the record, not its projection: it may have just changed.
    const job = decodeJob(this.kernel.records.get(JobKind.name, id))
    if (!job || !this.cursors.enabled(job) || this.cursors.hash(job) !== cursor.schedule_hash) {
      return { outcome: 'idle' }
    }
    const { limits } = this
    const plan = planOccurrence(job, cursor, { now, missedBefore: limits.startedAt() }, limits, this.runs)
    if (plan.outcome === 'idle' || plan.outcome === 'waiting') return plan
    const misfire =
      plan.outcome !== 'moved' && plan.misfire
        ? { misfire_count: cursor.misfire_count + 1, last_misfire_at: now }
        : undefined
    const advance = { next_run_at: plan.next ?? null, ...misfire }
    if (plan.outcome !== 'run') {
      this.cursors.update(t, id, advance)
      return { outcome: 'passed' }
    }
    const { at, skip, metadata, waits } = plan
    const run = this.runs.insert(t, {
      id: plan.run,
      jobId: id,
      status: skip ? 'canceled' : 'scheduled',
      attempt: 1,
      fireId: plan.fire,
      scheduledAt: at,
      ...(waits ? { waitUntil: now + limits.queueWait } : {}),
      scope: job.scope.id,
      cause: cursor.event ?? undefined,
      ...(Object.keys(metadata).length > 0 ? { metadata } : {}),
      ...(skip ? { error: `${skip.reason}: ${skip.text}` } : {}),
    })
    this.cursors.update(t, id, {
      ...advance,
      last_scheduled_at: at,
      last_fire_id: plan.fire,
      ...(skip || waits ? {} : { last_run_at: now }),
    })
    return skip ? { outcome: 'passed' } : waits ? { outcome: 'queued' } : { outcome: 'claimed', run, job }
  }

  /** Cancels occurrences that waited too long and gives the free slots to the others; durable when it resolves. */
  admit(): Promise<readonly Admission[]> {
    return this.kernel.db.tx(t => {
      const { limits, runs, rows } = this
      const now = this.kernel.clock.now()
      rows.boundWaits(t, now + limits.queueWait)
      const overdue = rows.overdue(now, CANCELED_AT_ONCE)
      const canceled = overdue.map(run => this.#cancel(t, run, slotSkip(limits, limits.queueWait)))
      const free = limits.maxConcurrent - runs.openCount()
      return [...canceled, ...(free > 0 ? rows.waiting(free).map(run => this.#admit(t, run, now)) : [])]
    })
  }

  #admit(t: Tx, run: RunRow, now: number): Admission {
    const job = decodeJob(this.kernel.records.get(JobKind.name, run.job_id))
    const cursor = this.cursors.get(run.job_id)
    if (!job || !cursor) return this.#cancel(t, run, { reason: 'job_not_found', text: 'the job was deleted' })
    if (!this.cursors.enabled(job))
      return this.#cancel(t, run, { reason: 'job_disabled', text: 'the job was disabled' })
    const occurrence = { at: run.scheduled_at ?? now, next: cursor.next_run_at ?? undefined }
    const { skip, next, metadata } = admitOccurrence(job, occurrence, now, this.limits, this.runs)
    if (!skip) {
      this.cursors.update(t, job.id, { last_run_at: now })
      this.runs.slotTaken()
      return { outcome: 'admitted', run: this.rows.admit(t, run), job }
    }
    this.cursors.update(t, job.id, { next_run_at: next ?? null })
    return this.#cancel(t, run, skip, metadata)
  }

  #cancel(t: Tx, run: RunRow, { reason, text }: Skip, metadata: Readonly<Record<string, string>> = {}): Admission {
    const error = `${reason}: ${text}`
    return {
      outcome: 'canceled',
      run: this.runs.move(t, run, 'canceled', { error, metadata: { reason, ...metadata } }),
    }
  }

  /**
   * Reserves a retry after a failed run. If a limit is reached, the retry is recorded as `canceled` and ends the retries.
   * Returns undefined then, and when the definition was deleted.
   */
  retry(t: Tx, failed: RunRow): { readonly run: RunRow; readonly definition: DefinitionRecord } | undefined {
    const of = runOf(failed)
    const definition = this.definition(of)
    if (!definition) return undefined
    const skip = this.#skip(definition, of)
    const run = this.runs.insert(t, {
      ...of,
      id: this.kernel.ids.id('run'),
      status: skip ? 'canceled' : 'scheduled',
      attempt: failed.attempt + 1,
      fireId: failed.fire_id ?? undefined,
      scheduledAt: failed.scheduled_at ?? undefined,
      scope: definition.scope.id,
      cause: this.runs.get(failed.id)?.event,
      prompt: failed.prompt ?? undefined,
      depth: failed.depth,
      metadata: { retry_of: failed.id, ...(skip ? { reason: skip.reason } : {}) },
      ...(skip ? { error: `${skip.reason}: ${skip.text}` } : {}),
    })
    if (skip) return undefined
    this.#ran(t, run)
    return { run, definition }
  }

  /** The current definition of a run; undefined when it was deleted or is invalid. */
  definition(of: RunOf): DefinitionRecord | undefined {
    return 'jobId' in of
      ? decodeJob(this.kernel.records.get(JobKind.name, of.jobId))
      : decodeTrigger(this.kernel.records.get(TriggerKind.name, of.triggerId))
  }

  /** The agent and workspace of a run, from its current definition; undefined when the run or its definition was deleted. */
  about(id: string): RunAbout | undefined {
    const run = this.runs.get(id)
    const definition = run && this.definition(runOf(run))
    if (!definition) return undefined
    return {
      agentName: definition.spec.agent_name ?? '',
      workspaceId: workspaceOf(this.kernel, definition),
      willRetry: run.status === 'failed' && retryDelay(definition.spec, run.attempt) !== undefined,
    }
  }

  /**
   * Claims a fire of a trigger under its id. If a limit is reached, the run is recorded as `canceled`.
   * Returns undefined when it was claimed before.
   */
  fired(t: Tx, trigger: TriggerRecord, fire: TriggerFire): RunRow | undefined {
    const of = { triggerId: trigger.id }
    const book = fire.hasRoom ? undefined : this.#book(trigger, of, fire.id)
    if (book?.isKnown) return undefined
    const skip = fire.skip ?? (book && this.#skip(trigger, of, book))
    return this.runs.insert(t, {
      ...of,
      id: fire.id,
      fireId: fire.id.replace(/^run_/, 'fire_'),
      status: skip ? 'canceled' : 'scheduled',
      attempt: 1,
      scope: trigger.scope.id,
      cause: fire.cause,
      actor: fire.actor,
      prompt: fire.prompt,
      depth: fire.depth,
      metadata: { ...fire.metadata, ...(skip ? { reason: skip.reason } : {}) },
      ...(skip ? { error: `${skip.reason}: ${skip.text}` } : {}),
    })
  }

  /**
   * Checks the limits. Throws 409 `concurrency_limit`, 409 `fire_limit`. False when the run of a trigger was claimed before.
   */
  room(definition: DefinitionRecord, of: RunOf, run?: string): boolean {
    const book = this.#book(definition, of, run)
    if (book.openCount(this.limits.maxConcurrent) >= this.limits.maxConcurrent)
      throw AutomationErrors.concurrency_limit()
    const now = this.kernel.clock.now()
    const limit = limitOf(definition.spec, of, now, this.limits, book)
    if (limit.freeAt === undefined) return !book.isKnown
    throw AutomationErrors.fire_limit(
      `fire limit reached: ${'jobId' in of ? 'job' : 'trigger'} ${definition.spec.name} ran ${limit.max} times within ${limit.window}; wait or raise its fire_limit`,
      { retryAfter: Math.max(1, Math.ceil((limit.freeAt - now) / 1000)) },
    )
  }

  #ran(t: Tx, { job_id: job, started_at: at }: RunRow): void {
    if (this.cursors.get(job)) this.cursors.update(t, job, { last_run_at: at })
  }

  /** Reserves a manual run. Throws 404, 409 `concurrency_limit`, 409 `fire_limit`. */
  reserve(
    t: Tx,
    id: string,
    more: { readonly actor: Actor; readonly cause: string },
  ): { readonly run: RunRow; readonly job: JobRecord } {
    const record = this.kernel.records.get(JobKind.name, id)
    if (!record) throw AutomationErrors.job_not_found(`job not found: ${shown(id)}`)
    const job = decodeJob(record)
    if (!job || jobProblem(job.spec, job.scope))
      throw AutomationErrors.job_damaged(
        `the stored definition of job ${id} is invalid; delete the job and create it again`,
      )
    this.room(job, { jobId: id })
    const what = { id: this.kernel.ids.id('run'), jobId: id, status: 'scheduled', attempt: 1 } as const
    const run = this.runs.insert(t, { ...what, scope: job.scope.id, ...more })
    this.#ran(t, run)
    return { run, job }
  }

  /** A run of the job completed. */
  completed(t: Tx, job: string): void {
    this.cursors.resumed(t, job, true)
  }

  /** Reason for which a run cannot start now. A job also waits for its previous run. */
  #skip(definition: DefinitionRecord, of: RunOf, book: SlotBook = this.#book(definition, of)): Skip | undefined {
    const { limits, runs } = this
    const limit = limitOf(definition.spec, of, this.kernel.clock.now(), limits, book)
    return skipOf('jobId' in of && runs.openOf(of.jobId) > 0, limit, limits, book)
  }

  #book({ spec }: DefinitionRecord, of: RunOf, run?: string) {
    return this.runs.claimed(of, windowOf(spec, this.limits), this.kernel.clock.now(), run)
  }
}

/** Start time of the daemon in epoch milliseconds, corrected when the wall clock was set back since. */
export function startOf(clock: Clock): () => number {
  const [wall, monotonic] = [clock.now(), clock.monotonic()]
  return () => Math.min(wall, clock.now() - (clock.monotonic() - monotonic))
}
