/** What tasks may be at most. Sizes in bytes of UTF-8, times in milliseconds. */
export const LIMITS = {
  title: 500,
  text: 64 * 1024,
  reason: 2000,
  metadata: 16 * 1024,
  result: 64 * 1024,
  key: 200,
  /** Levels of a hierarchy, its root being the first. */
  depth: 8,
  children: 64,
  dependencies: 32,
  /** Tasks that are walked through to find a cycle. */
  graph: 10_000,
  attempts: { byDefault: 3, most: 10 },
  designations: 5,
  /** Runs that a retry or recovery goes back to, one by the other. */
  chain: 10,
  bulk: 100,
  capabilities: 64,
  lease: { byDefault: 5 * 60_000, most: 24 * 60 * 60_000 },
  sweep: { everyMs: 15_000, batch: 100 },
  force: { count: 10, windowMs: 60_000 },
  /** Events of one task that are kept; so many more are added before the oldest are taken away. */
  events: { kept: 1000, slack: 100 },
} as const

/** How a priority is ordered. */
export const PRIORITY = { low: 10, medium: 20, high: 30, urgent: 40 } as const

/** The priority of an order, the nearest one at or below it. */
export const priorityOf = (rank: number): keyof typeof PRIORITY =>
  rank >= PRIORITY.urgent ? 'urgent' : rank >= PRIORITY.high ? 'high' : rank >= PRIORITY.medium ? 'medium' : 'low'
