import { once } from 'node:events'
import type { Clock, Ids } from '../contract/basics.js'

/** Default delays in milliseconds: before the first retry, and the maximum. */
const USUAL = { firstMs: 50, longestMs: 30_000 }

/** Milliseconds before the n-th retry (n from 1): doubling from 50 ms to 30 s, less up to a fifth at random, never below 50. */
export function backoff(attempt: number, random: () => number, { firstMs, longestMs } = USUAL): number {
  const full = Math.min(longestMs, firstMs * 2 ** Math.min(attempt - 1, 20))
  return Math.max(firstMs, Math.round(full * (1 - 0.2 * random())))
}

/** Waits for the delay of {@link backoff}; ends early when the signal aborts. */
export async function pause(
  { clock, ids }: { readonly clock: Clock; readonly ids: Ids },
  attempt: number,
  signal: AbortSignal,
  delays = USUAL,
): Promise<void> {
  const ms = backoff(attempt, () => ids.random(), delays)
  await clock.sleep(ms, signal).catch(() => {})
}

/** Resolves when the signal aborts. */
export async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}
