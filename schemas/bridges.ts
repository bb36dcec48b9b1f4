/** The schemas of bridge instances that other areas need. */
import * as v from 'valibot'
import { Integer } from './kernel/common.js'

/** Bridge instances by state. */
export const BridgeStatusCounts = v.object({
  auth_required: Integer,
  degraded: Integer,
  disabled: Integer,
  error: Integer,
  ready: Integer,
  starting: Integer,
})
export type BridgeStatusCounts = v.InferOutput<typeof BridgeStatusCounts>

/** All bridge instances together. */
export const BridgeTotals = v.object({
  auth_failures_total: Integer,
  delivery_backlog: Integer,
  delivery_dropped_total: Integer,
  delivery_failures_total: Integer,
  route_count: Integer,
  status_counts: BridgeStatusCounts,
  total_instances: Integer,
})
export type BridgeTotals = v.InferOutput<typeof BridgeTotals>
