import type { FireLimit, Retry } from '../../../schemas/automation.js'
import { durationMs } from '../../../schemas/duration.js'
import type { RunOf } from './run-row.js'

/** Why an occurrence or a fire of a trigger does not run. */
export interface Skip {
  readonly reason: string
  readonly text: string
}

/** The runs that a decision depends on: the table of the daemon, or the books of a simulation. */
export interface RunBook {
  has(run: string): boolean
  /** Runs of one job that are claimed or going on. */
  openOf(job: string): number
  /** Those of all jobs and triggers. */
  openCount(): number
  /** Runs claimed in (now - window, now] that were not canceled, and when the oldest of them was; milliseconds. */
  counted(of: RunOf, window: number, now: number): { readonly count: number; readonly oldest: number }
}

/** Limits that are the same for all definitions. */
export interface Limits {
  /** Default zone of cron expressions, an IANA name. */
  readonly timezone: string
  readonly maxConcurrent: number
  readonly fireLimit: FireLimit
}

/** The members of a definition that decide about its runs. */
export interface Limited {
  readonly fire_limit?: FireLimit | null | undefined
  readonly retry?: Retry | null | undefined
}

/** The fire limit in force; `freeAt`, in epoch milliseconds, is when the next run may start if it is reached. */
export type ReachedLimit = FireLimit & { readonly freeAt?: number | undefined }

export function limitOf(spec: Limited, of: RunOf, now: number, limits: Limits, runs: RunBook): ReachedLimit {
  const limit = spec.fire_limit ?? limits.fireLimit
  const window = durationMs(limit.window) ?? 0
  const { count, oldest } = runs.counted(of, window, now)
  return count < limit.max ? limit : { ...limit, freeAt: oldest + window }
}

/** Why there is no room for a run now; undefined when there is. */
export function skipOf(overlaps: boolean, limit: ReachedLimit, limits: Limits, runs: RunBook): Skip | undefined {
  if (overlaps) return { reason: 'self_overlap', text: 'another run of this job is going on' }
  if (limit.freeAt !== undefined) return { reason: 'fire_limit', text: 'too many runs of this job lately' }
  if (runs.openCount() >= limits.maxConcurrent)
    return { reason: 'concurrency_limit', text: 'automation.max_concurrent_jobs runs are going on' }
  return undefined
}

/** Milliseconds until a run that failed is tried again; undefined: it is not. `attempt` counts from 1. */
export function retryDelay({ retry }: Limited, attempt: number): number | undefined {
  if (retry?.strategy !== 'backoff' || attempt > retry.max_retries) return undefined
  return (durationMs(retry.base_delay) ?? 0) * 2 ** (attempt - 1)
}
