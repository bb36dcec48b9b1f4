import { RemoteErrors } from '../api.js'

/** State of an offer, on either side. */
export const OFFER_STATES = ['offered', 'taken', 'completed', 'failed', 'expired', 'withdrawn'] as const
export type OfferState = (typeof OFFER_STATES)[number]

/** All transitions of an offer: source states and target state. */
export const OFFER_MOVES = {
  /** The origin gave the attempt to a peer. */
  take: { from: ['offered'], to: 'taken' },
  complete: { from: ['taken'], to: 'completed' },
  fail: { from: ['offered', 'taken'], to: 'failed' },
  /** The peer's lease expired; the next attempt is offered. */
  again: { from: ['taken'], to: 'offered' },
  /** No peer took it in time, or the attempt went to another peer. */
  expire: { from: ['offered', 'taken'], to: 'expired' },
  withdraw: { from: ['offered', 'taken'], to: 'withdrawn' },
} as const satisfies Readonly<Record<string, { readonly from: readonly OfferState[]; readonly to: OfferState }>>
export type OfferMove = keyof typeof OFFER_MOVES

/** States of offers that are not over. */
export const OPEN: ReadonlySet<OfferState> = new Set(['offered', 'taken'])

/** Returns the state after a transition. @throws Fault `remote_offer_conflict` if the transition is not allowed */
export function moved(state: OfferState, move: OfferMove): OfferState {
  const { from, to } = OFFER_MOVES[move]
  if ((from as readonly OfferState[]).includes(state)) return to
  throw RemoteErrors.remote_offer_conflict(`the offer is ${state}; ${move} needs ${from.join(' or ')}`)
}
