/** Milliseconds before the n-th retry (n from 1): 50 ms doubling to 30 s, less up to a fifth at random, never below 50. */
export function backoff(attempt: number, random: () => number): number {
  const full = Math.min(30_000, 50 * 2 ** Math.min(attempt - 1, 20))
  return Math.max(50, Math.round(full * (1 - 0.2 * random())))
}
