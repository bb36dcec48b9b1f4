import type { DeliveryState } from '../api.js'

/**
 * All transitions of a part of a message. `prepared`: in the ledger; `queued`: its worker sends it, now or after a pause;
 * `send_attempt_started`: the adapter has it; `unknown_after_send`: it may have arrived. A part that was delivered is queued again
 * when its text changed, for an edit, which can be repeated, and fails when the platform says later that it did not arrive. Only a
 * person queues a part that failed, or lets one go.
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

/** States of parts that are on their way. */
export const ACTIVE = ['prepared', 'queued', 'send_attempt_started', 'unknown_after_send'] as const
const active: ReadonlySet<DeliveryState> = new Set(ACTIVE)

export const isActive = (state: DeliveryState): boolean => active.has(state)

/** The next state of a part; throws when the table has no such transition. */
export function step(from: DeliveryState, to: DeliveryState): DeliveryState {
  if (!TRANSITIONS[from].includes(to)) throw new Error(`a delivery does not go from ${from} to ${to}`)
  return to
}

/** Of the states of all parts the one that is furthest from its end. */
const FURTHEST: readonly DeliveryState[] = [
  'prepared',
  'queued',
  'send_attempt_started',
  'unknown_after_send',
  'failed',
  'suppressed',
  'delivered',
]

/** How a message stands, by its parts. */
export const furthest = (states: readonly DeliveryState[]): DeliveryState =>
  FURTHEST.find(state => states.includes(state)) ?? 'delivered'
