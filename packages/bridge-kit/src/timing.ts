import { setTimeout as wait } from 'node:timers/promises'

/** Time and chance; tests hand in their own. */
export interface Timing {
  /** Milliseconds of a clock that only runs forward. */
  now(): number
  /** Resolves after so many milliseconds; rejects when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** At least 0 and below 1. */
  random(): number
}

/** Those of this machine. */
export const realTiming: Timing = {
  now: () => performance.now(),
  sleep: (ms, signal) => wait(ms, undefined, signal ? { signal } : {}),
  random: Math.random,
}

/** How long waits grow. */
export interface Backoff {
  readonly baseMs: number
  readonly capMs: number
}

export const BACKOFF: Backoff = { baseMs: 500, capMs: 60_000 }

/**
 * Milliseconds before the next attempt after so many failed ones: between half of the exponential back-off and all of it, so
 * that many that failed together do not try again together.
 */
export function backoffMs(
  failures: number,
  timing: Pick<Timing, 'random'>,
  { baseMs, capMs }: Backoff = BACKOFF,
): number {
  const full = Math.min(capMs, baseMs * 2 ** Math.min(Math.max(0, failures - 1), 30))
  return Math.round(full / 2 + (full / 2) * timing.random())
}

/** A `Retry-After` is obeyed up to this; a platform that asks for more is broken. */
const LONGEST_RETRY_MS = 60 * 60_000

/** Milliseconds that a `Retry-After` header asks for, in seconds or as a date; undefined: it says nothing. */
export function retryAfterMs(header: string | null | undefined, nowEpochMs: number): number | undefined {
  if (header == null || header.trim() === '') return undefined
  const seconds = Number(header)
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(header) - nowEpochMs
  return Number.isFinite(ms) ? Math.min(LONGEST_RETRY_MS, Math.max(0, Math.ceil(ms))) : undefined
}

/** How {@link retrying} goes on. */
export interface Retries {
  /** The first one included. */
  readonly attempts: number
  readonly signal?: AbortSignal
  readonly backoff?: Backoff
  readonly timing?: Timing
  /** Whether an error may go away by itself; default: all may. */
  readonly transient?: (error: unknown) => boolean
  /** Milliseconds that the platform asked for with its error; authoritative. */
  readonly retryAfter?: (error: unknown) => number | undefined
}

/** Calls until it succeeds, with growing waits or those that the platform asks for. Rejects with the last error. */
export async function retrying<T>(call: (attempt: number) => Promise<T>, retries: Retries): Promise<T> {
  const { attempts, signal, backoff, timing = realTiming, transient = () => true, retryAfter } = retries
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted()
    try {
      return await call(attempt)
    } catch (error) {
      if (attempt >= attempts || !transient(error)) throw error
      const asked = retryAfter?.(error)
      const ms =
        asked === undefined ? backoffMs(attempt, timing, backoff) : Math.min(LONGEST_RETRY_MS, Math.max(0, asked))
      await timing.sleep(ms, signal)
    }
  }
}
