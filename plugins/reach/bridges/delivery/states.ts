import type { DeliveryState } from '../api.js'

/**
 * How a message part can change state. `prepared`: stored; `queued`: waiting for its worker; `send_attempt_started`:
 * given to the adapter; `unknown_after_send`: it may have arrived. A delivered part is queued again for an edit, which
 * is repeatable, and fails if the platform later reports that it did not arrive. Only a person can queue or suppress a
 * failed part.
 */
export const TRANSITIONS: { readonly [S in DeliveryState]: readonly DeliveryState[] } = {
  prepared: ['queued', 'suppressed', 'failed'],
  queued: ['send_attempt_started', 'suppressed', 'failed'],
  send_attempt_started: ['delivered', 'queued', 'unknown_after_send', 'failed'],
  unknown_after_send: ['delivered', 'queued', 'failed', 'suppressed'],
  delivered: ['queued', 'failed'],
  failed: ['queued', 'suppressed'],
  suppressed: [],
}

/** States of parts on their way. */
export const ACTIVE = ['prepared', 'queued', 'send_attempt_started', 'unknown_after_send'] as const
const active: ReadonlySet<DeliveryState> = new Set(ACTIVE)

export const isActive = (state: DeliveryState): boolean => active.has(state)

/** Returns the next state of a part. Throws if there is no such transition. */
export function step(from: DeliveryState, to: DeliveryState): DeliveryState {
  if (!TRANSITIONS[from].includes(to)) throw new Error(`a delivery cannot change from ${from} to ${to}`)
  return to
}

/** States of parts, furthest from the end first. */
const FURTHEST: readonly DeliveryState[] = [
  'prepared',
  'queued',
  'send_attempt_started',
  'unknown_after_send',
  'failed',
  'suppressed',
  'delivered',
]

/** The state of a message, from the states of its parts. */
export const furthest = (states: readonly DeliveryState[]): DeliveryState =>
  FURTHEST.find(state => states.includes(state)) ?? 'delivered'
