import type { FireLimit, Retry } from '../../../schemas/automation.js'
import { durationMs } from '../../../schemas/duration.js'
import type { RunOf } from './run-row.js'

/** Why an occurrence of a job or a fire of a trigger is skipped. */
export interface Skip {
  readonly reason: string
  readonly text: string
}

/** The runs that a decision depends on: the daemon's table, or the in-memory runs of a simulation. */
export interface RunBook {
  has(run: string): boolean
  /** Number of scheduled or running runs of one job. */
  openOf(job: string): number
  /** Number of scheduled or running runs of all jobs and triggers. */
  openCount(): number
  /** Runs claimed in (now - window, now] and not canceled, with the claim time of the oldest; milliseconds. */
  counted(of: RunOf, window: number, now: number): { readonly count: number; readonly oldest: number }
}

/** Limits shared by all definitions. */
export interface Limits {
  /** IANA time zone of cron expressions. */
  readonly timezone: string
  readonly maxConcurrent: number
  readonly fireLimit: FireLimit
}

/** The members of a definition that limit its runs. */
export interface Limited {
  readonly fire_limit?: FireLimit | null | undefined
  readonly retry?: Retry | null | undefined
}

/** The effective fire limit. When it is reached, `freeAt` (epoch milliseconds) is when the next run may start. */
export type ReachedLimit = FireLimit & { readonly freeAt?: number | undefined }

export function limitOf(spec: Limited, of: RunOf, now: number, limits: Limits, runs: RunBook): ReachedLimit {
  const limit = spec.fire_limit ?? limits.fireLimit
  const window = durationMs(limit.window) ?? 0
  const { count, oldest } = runs.counted(of, window, now)
  return count < limit.max ? limit : { ...limit, freeAt: oldest + window }
}

/** Why a run cannot start now; undefined when it can. */
export function skipOf(overlaps: boolean, limit: ReachedLimit, limits: Limits, runs: RunBook): Skip | undefined {
  if (overlaps) return { reason: 'self_overlap', text: 'the previous run of this job is still running' }
  if (limit.freeAt !== undefined)
    return { reason: 'fire_limit', text: `already ran ${limit.max} times within ${limit.window}` }
  if (runs.openCount() >= limits.maxConcurrent)
    return {
      reason: 'concurrency_limit',
      text: `${limits.maxConcurrent} runs are in progress (automation.max_concurrent_jobs)`,
    }
  return undefined
}

/** Milliseconds until a failed run is retried; undefined when it is not. `attempt` counts from 1. */
export function retryDelay({ retry }: Limited, attempt: number): number | undefined {
  if (retry?.strategy !== 'backoff' || attempt > retry.max_retries) return undefined
  return (durationMs(retry.base_delay) ?? 0) * 2 ** (attempt - 1)
}
