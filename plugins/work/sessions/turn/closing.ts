import type { TurnOutcome } from '../api.js'
import type { NewEvent } from '../events.js'

/** The event that ends a turn. */
export function closing(outcome: TurnOutcome, durationMs: number): NewEvent {
  const { status, turnId } = outcome
  const duration_ms = Math.round(durationMs)
  switch (outcome.status) {
    case 'completed':
      return {
        type: 'done',
        turnId,
        content: {
          status,
          stop_reason: outcome.stopReason,
          duration_ms,
          ...(outcome.expired !== undefined && { expired_requests: outcome.expired }),
        },
      }
    case 'canceled':
      return { type: 'done', turnId, content: { status, stop_reason: 'cancelled', duration_ms } }
    case 'failed':
      return { type: 'error', turnId, content: { error: outcome.error, duration_ms }, failure: outcome.failure }
  }
}
