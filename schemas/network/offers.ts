/** Tasks that daemons offer to each other. */
import * as v from 'valibot'
import { DurationText } from '../duration.js'
import { Integer, maybeTimestamp, Timestamp } from '../kernel/common.js'

export const RemoteOffer = v.object({
  offer_id: v.string(),
  direction: v.picklist(['given', 'taken']),
  state: v.picklist(['offered', 'taken', 'completed', 'failed', 'expired', 'withdrawn']),
  attempt: Integer,
  peer: v.nullish(v.string()),
  title: v.string(),
  task_id: v.nullish(v.string()),
  run_id: v.nullish(v.string()),
  error: v.nullish(v.string()),
  offered_at: Timestamp,
  expires_at: Timestamp,
  ended_at: maybeTimestamp,
})
export type RemoteOffer = v.InferOutput<typeof RemoteOffer>
export const RemoteOfferReply = v.object({ offer: RemoteOffer })

/** The agent that works on offers from other daemons; absent: offers are refused. */
export const OfferAcceptance = v.object({
  agent: v.string(),
  workspace: v.string(),
  at_once: Integer,
  /** Accepted peers; empty: all. */
  peers: v.array(v.string()),
})
export type OfferAcceptance = v.InferOutput<typeof OfferAcceptance>
export const ListRemoteOffersReply = v.object({
  offers: v.array(RemoteOffer),
  accepts: v.nullish(OfferAcceptance),
})
export type ListRemoteOffersReply = v.InferOutput<typeof ListRemoteOffersReply>
export const OfferAcceptanceReply = v.object({ accepts: OfferAcceptance })

export const OfferTaskBody = v.strictObject({
  task: v.pipe(v.string(), v.minLength(1), v.maxLength(128), v.description('ID of the task')),
  within: v.optional(v.pipe(DurationText, v.description('how long peers may accept it: 1m to 7d; default 1d'))),
})
export type OfferTaskBody = v.InferOutput<typeof OfferTaskBody>

export const AcceptOffersBody = v.strictObject({
  agent: v.pipe(v.string(), v.minLength(1), v.maxLength(128), v.description('agent that works on them')),
  workspace: v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description('workspace that it works in')),
  at_once: v.optional(v.pipe(Integer, v.minValue(1), v.maxValue(16), v.description('how many at once; default 1'))),
  peers: v.optional(
    v.pipe(
      v.array(v.pipe(v.string(), v.minLength(1), v.maxLength(64))),
      v.maxLength(1000),
      v.description('peer whose offers are accepted; default: all peers'),
    ),
  ),
})
export type AcceptOffersBody = v.InferOutput<typeof AcceptOffersBody>
