/** The schemas of conversations and messages of bridges. */
import * as v from 'valibot'
import { Integer, queryInteger, Timestamp } from './kernel/common.js'

/** A conversation bound to a session. */
export const BridgeRoute = v.object({
  agent_name: v.string(),
  bridge_instance_id: v.string(),
  created_at: Timestamp,
  group_id: v.optional(v.string()),
  last_activity_at: Timestamp,
  peer_id: v.optional(v.string()),
  routing_key_hash: v.string(),
  scope: v.picklist(['global', 'workspace']),
  session_id: v.string(),
  thread_id: v.optional(v.string()),
  updated_at: Timestamp,
  workspace_id: v.optional(v.string()),
})
export type BridgeRoute = v.InferOutput<typeof BridgeRoute>

export const ListBridgeRoutesReply = v.object({ routes: v.array(BridgeRoute) })

const State = v.picklist([
  'prepared',
  'queued',
  'send_attempt_started',
  'unknown_after_send',
  'delivered',
  'suppressed',
  'failed',
])

/** A message sent, or to be sent, to a platform. */
export const BridgeDelivery = v.object({
  id: v.string(),
  bridge_instance_id: v.string(),
  kind: v.picklist(['answer', 'post', 'notice', 'question']),
  source: v.pipe(v.string(), v.description('who made it')),
  state: v.pipe(State, v.description('state of the part that is furthest from completion')),
  reason: v.optional(v.string()),
  target: v.pipe(v.string(), v.description('route of the target')),
  text: v.pipe(v.string(), v.description('beginning of the text; empty once it was delivered')),
  parts: Integer,
  attempts: v.pipe(Integer, v.description('of all parts')),
  session_id: v.optional(v.string()),
  turn_id: v.optional(v.string()),
  created_at: Timestamp,
  ended_at: v.optional(Timestamp),
})
export type BridgeDelivery = v.InferOutput<typeof BridgeDelivery>

export const ListBridgeDeliveriesQuery = v.strictObject({
  state: v.optional(State),
  limit: v.optional(v.pipe(queryInteger(1, 200), v.description('maximum number; default 50'))),
})
export const ListBridgeDeliveriesReply = v.object({ deliveries: v.array(BridgeDelivery) })
export const BridgeDeliveryReply = v.object({ delivery: BridgeDelivery })
