import { setTimeout as wait } from 'node:timers/promises'

/** Clock and randomness; tests replace them. */
export interface Timing {
  /** Milliseconds of a monotonic clock. */
  now(): number
  /** Resolves after `ms` milliseconds; rejects when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** At least 0 and below 1. */
  random(): number
}

/** The clock and randomness of this machine. */
export const realTiming: Timing = {
  now: () => performance.now(),
  sleep: (ms, signal) => wait(ms, undefined, signal ? { signal } : {}),
  random: Math.random,
}

/** Parameters of a back-off. */
export interface Backoff {
  readonly baseMs: number
  readonly capMs: number
}

export const BACKOFF: Backoff = { baseMs: 500, capMs: 60_000 }

/**
 * Milliseconds before the next attempt: a random value between half and all of the exponential back-off, so that simultaneous
 * failures do not retry simultaneously.
 */
export function backoffMs(
  failures: number,
  timing: Pick<Timing, 'random'>,
  { baseMs, capMs }: Backoff = BACKOFF,
): number {
  const full = Math.min(capMs, baseMs * 2 ** Math.min(Math.max(0, failures - 1), 30))
  return Math.round(full / 2 + (full / 2) * timing.random())
}

/** The longest accepted `Retry-After`; a platform that demands more is broken. */
const LONGEST_RETRY_MS = 60 * 60_000

/** Milliseconds of a `Retry-After` header, given in seconds or as a date; undefined: absent or invalid. */
export function retryAfterMs(header: string | null | undefined, nowEpochMs: number): number | undefined {
  if (header == null || header.trim() === '') return undefined
  const seconds = Number(header)
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(header) - nowEpochMs
  return Number.isFinite(ms) ? Math.min(LONGEST_RETRY_MS, Math.max(0, Math.ceil(ms))) : undefined
}

/** Options of {@link retrying}. */
export interface Retries {
  /** Including the first. */
  readonly attempts: number
  readonly signal?: AbortSignal
  readonly backoff?: Backoff
  readonly timing?: Timing
  /** Whether an error is worth a retry; default: all are. */
  readonly transient?: (error: unknown) => boolean
  /** Milliseconds that the platform demanded with its error; overrides the back-off. */
  readonly retryAfter?: (error: unknown) => number | undefined
}

/** Calls until success, with back-off or the delay demanded by the platform. Rejects with the last error. */
export async function retrying<T>(call: (attempt: number) => Promise<T>, retries: Retries): Promise<T> {
  const { attempts, signal, backoff, timing = realTiming, transient = () => true, retryAfter } = retries
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted()
    try {
      return await call(attempt)
    } catch (error) {
      if (attempt >= attempts || !transient(error)) throw error
      const requestedMs = retryAfter?.(error)
      const ms =
        requestedMs === undefined
          ? backoffMs(attempt, timing, backoff)
          : Math.min(LONGEST_RETRY_MS, Math.max(0, requestedMs))
      await timing.sleep(ms, signal)
    }
  }
}
