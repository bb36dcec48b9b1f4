import { type SessionLimits, SessionSettings } from '../settings.js'
import type { CancelReason } from './turn.js'

/** The limit that ended a turn, with its event; undefined when no limit did. */
export function expiryOf(
  cancel: CancelReason | undefined,
  limits: SessionLimits,
): { readonly kind: 'timeout' | 'cancellation'; readonly error: string; readonly summary: string } | undefined {
  const bound = (name: keyof SessionLimits) =>
    `${Math.round(limits[name] / 1000)} s (setting ${SessionSettings[name].path})`
  const timeout = (summary: string) => ({ kind: 'timeout', error: `timeout: ${summary}`, summary }) as const
  switch (cancel) {
    case 'activity_timeout':
      return timeout(`nothing came from the agent for ${bound('inactivityTimeout')}`)
    case 'turn_timeout':
      return timeout(`the turn took longer than ${bound('turnTimeout')}`)
    case 'frozen':
      return timeout(`the agent process was frozen (state T) for ${bound('frozenAfter')}`)
    case 'max_iterations': {
      const summary = `the agent began more than ${limits.maxIterations} tool calls in one turn (setting ${SessionSettings.maxIterations.path})`
      return { kind: 'cancellation', error: `max_iterations: ${summary}`, summary }
    }
    default:
      return undefined
  }
}
