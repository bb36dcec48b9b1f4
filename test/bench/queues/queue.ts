/** A queue of work as the bench drives it, each claimant over a connection of its own where its client knows of such. */
export interface Queue {
  /** So many pieces of work wait besides those that do. */
  fill(count: number): Promise<void>
  /** Claims one, extends the lease and completes it; throws when there is none. */
  cycle(claimant: number): Promise<void>
  /** Completes what the claimant has claimed and claims the next one in one request or transaction; the first time it only claims. */
  next?(claimant: number): Promise<void>
  close(): Promise<void>
}

/** Milliseconds of a lease, the same for all. */
export const LEASE_MS = 300_000
/** Text of a piece of work. */
export const WORK = 'Report what has changed since yesterday.'

/** Does something so many times, some at once. */
export async function times(count: number, atOnce: number, work: (lane: number) => Promise<unknown>): Promise<void> {
  let startCount = 0
  const lane = async (n: number) => {
    while (startCount++ < count) await work(n)
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, (_, n) => lane(n)))
}
