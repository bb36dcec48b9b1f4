import * as v from 'valibot'
import { registry } from '../../../../kernel/plugin.js'

/** Contributes the timing of health checks, in milliseconds; the first contributor counts. */
export interface HealthTiming {
  /** Time without a sign of life after which a waiting process is stale. */
  readonly staleAfterMs: () => number
  /** Minimum time between two calls of `healthUpdated` for one session. */
  readonly tellEveryMs: () => number
}

export const HealthTimings = registry<HealthTiming>(
  'sessions.health@1',
  v.looseObject({ staleAfterMs: v.function(), tellEveryMs: v.function() }),
)
