/** Limits of tasks. Sizes in bytes of UTF-8, times in milliseconds. */
export const LIMITS = {
  title: 500,
  text: 64 * 1024,
  reason: 2000,
  metadata: 16 * 1024,
  result: 64 * 1024,
  key: 200,
  /** Levels of a hierarchy, including the root. */
  depth: 8,
  children: 64,
  dependencies: 32,
  /** Maximum number of tasks visited by the cycle check. */
  graph: 10_000,
  attempts: { byDefault: 3, most: 10 },
  designations: 5,
  /** Maximum length of a chain of retries and recoveries. */
  chain: 10,
  bulk: 100,
  capabilities: 64,
  /** `late`: time after the end of a lease in which its holder is answered that the lease has expired. */
  lease: { byDefault: 5 * 60_000, most: 24 * 60 * 60_000, late: 5000 },
  /** Deadlines of one kind that are handled in one transaction. */
  batch: 100,
  /** Interval in which the time of active runs is counted, and undelivered notifications are repeated. */
  intervalMs: 15_000,
  force: { count: 10, windowMs: 60_000 },
  /** Events kept per task, and how many more are written before the oldest are pruned. */
  events: { kept: 1000, slack: 100 },
} as const

/** Sort order of priorities. */
export const PRIORITY = { low: 10, medium: 20, high: 30, urgent: 40 } as const

/** The priority name for a rank: the nearest at or below it. */
export const priorityOf = (rank: number): keyof typeof PRIORITY =>
  rank >= PRIORITY.urgent ? 'urgent' : rank >= PRIORITY.high ? 'high' : rank >= PRIORITY.medium ? 'medium' : 'low'
