import type { FireLimit, Retry } from '../../../../schemas/automation.js'
import { durationMs } from '../../../../schemas/duration.js'
import type { RunOf } from './run-row.js'

/** Reason for which an occurrence of a job or a fire of a trigger is skipped. */
export interface Skip {
  readonly reason: string
  readonly text: string
}

/** The runs that a decision depends on: the daemon's table, or the in-memory runs of a simulation. */
export interface RunBook {
  has(run: string): boolean
  /** Number of scheduled or running runs of one job. */
  openOf(job: string): number
  /**
   * Number of scheduled or running runs of all jobs and triggers that have a slot.
   * @param enough a higher estimate will do if it is below
   */
  openCount(enough?: number): number
  /** Whether an occurrence waits for a slot. */
  isAnyWaiting(): boolean
  /** Runs claimed in (now - window, now] and not canceled, with the claim time of the oldest; milliseconds. */
  counted(of: RunOf, window: number, now: number): { readonly count: number; readonly oldest: number }
}

/** The runs that limit a claim. */
export type SlotBook = Pick<RunBook, 'openCount' | 'counted'>

/** Limits shared by all definitions. */
export interface Limits {
  /** IANA time zone of cron expressions. */
  readonly timezone: string
  readonly maxConcurrent: number
  /** Milliseconds that an occurrence waits for a slot. */
  readonly queueWait: number
  readonly fireLimit: FireLimit
}

/** The members of a definition that limit its runs. */
export interface Limited {
  readonly fire_limit?: FireLimit | null | undefined
  readonly retry?: Retry | null | undefined
}

/** The effective fire limit. When it is reached, `freeAt` is the time at which the next run may start (epoch milliseconds). */
export type ReachedLimit = FireLimit & { readonly freeAt?: number | undefined }

export function limitOf(spec: Limited, of: RunOf, now: number, limits: Limits, runs: SlotBook): ReachedLimit {
  const limit = spec.fire_limit ?? limits.fireLimit
  const window = windowOf(spec, limits)
  const { count, oldest } = runs.counted(of, window, now)
  return count < limit.max ? limit : { ...limit, freeAt: oldest + window }
}

/** Milliseconds in which the fire limit counts runs. */
export const windowOf = (spec: Limited, limits: Limits): number =>
  durationMs((spec.fire_limit ?? limits.fireLimit).window) ?? 0

export const SELF_OVERLAP: Skip = { reason: 'self_overlap', text: 'the previous run of this job is still running' }

/** The skip of a reached fire limit; undefined when it is not reached. */
export const fireSkip = ({ freeAt, max, window }: ReachedLimit): Skip | undefined =>
  freeAt === undefined ? undefined : { reason: 'fire_limit', text: `already ran ${max} times within ${window}` }

/** The skip of a run without a free slot. `waited`: milliseconds that it has waited. */
export function slotSkip({ maxConcurrent }: Limits, waited = 0): Skip {
  const text = `${maxConcurrent} runs are in progress (automation.max_concurrent_jobs)`
  if (waited === 0) return { reason: 'concurrency_limit', text }
  return {
    reason: 'concurrency_limit',
    text: `${text}; no slot was free for ${waited / 1000} s (automation.queue_wait)`,
  }
}

/** The start of the minute of a due time (epoch milliseconds): occurrences of one minute compete for slots. */
export const minuteOf = (at: number): number => at - (at % MINUTE_MS)
export const MINUTE_MS = 60_000

/**
 * Whether an occurrence must wait. Occurrences that already wait were due earlier. In a rush most have to, and a count of the open
 * runs would read all of them each time.
 */
export const mustWait = (limits: Limits, runs: RunBook): boolean =>
  runs.isAnyWaiting() || runs.openCount(limits.maxConcurrent) >= limits.maxConcurrent

/** Reason for which a run that cannot wait cannot start now; undefined when it can. */
export function skipOf(overlaps: boolean, limit: ReachedLimit, limits: Limits, runs: SlotBook): Skip | undefined {
  if (overlaps) return SELF_OVERLAP
  return (
    fireSkip(limit) ?? (runs.openCount(limits.maxConcurrent) >= limits.maxConcurrent ? slotSkip(limits) : undefined)
  )
}

/** Milliseconds until a failed run is retried; undefined when it is not. `attempt` counts from 1. */
export function retryDelay({ retry }: Limited, attempt: number): number | undefined {
  if (retry?.strategy !== 'backoff' || attempt > retry.max_retries) return undefined
  return (durationMs(retry.base_delay) ?? 0) * 2 ** (attempt - 1)
}
