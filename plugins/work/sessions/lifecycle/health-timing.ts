import * as v from 'valibot'
import { registry } from '../../../../kernel/plugin.js'

/** Contributes how health is judged and told of, in milliseconds; the first contributor counts. */
export interface HealthTiming {
  /** Without a sign of life for so long, one that waits is stale. */
  readonly staleAfterMs: () => number
  /** Between two calls of `healthUpdated` for one session. */
  readonly tellEveryMs: () => number
}

export const HealthTimings = registry<HealthTiming>(
  'sessions.health@1',
  v.looseObject({ staleAfterMs: v.function(), tellEveryMs: v.function() }),
)
