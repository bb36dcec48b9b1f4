/** Wake-ups of sessions. */
import * as v from 'valibot'
import { Integer, maybeTimestamp, Timestamp } from '../kernel/common.js'

/** Outcome of a wake-up. */
export const WakeResult = v.picklist(['sent', 'skipped', 'coalesced', 'rate_limited', 'failed'])
export type WakeResult = v.InferOutput<typeof WakeResult>

/** Why a wake-up was sent or skipped. */
export const WakeReason = v.picklist([
  'wake_sent',
  'heartbeat_disabled',
  'heartbeat_invalid',
  'heartbeat_no_policy',
  'heartbeat_rate_limited',
  'heartbeat_no_eligible_session',
  'cooldown_active',
  'quiet_window',
  'session_not_found',
  'session_unhealthy',
  'session_not_attachable',
  'session_prompt_active',
  'session_prompt_active_race',
  'synthetic_prompt_failed',
  'wake_coalesced',
])
export type WakeReason = v.InferOutput<typeof WakeReason>

/** The last wake-up of a session, and the earliest time of the next. */
export const WakeState = v.object({
  agent_name: v.optional(v.string()),
  coalesced_count: Integer,
  last_reason: v.optional(WakeReason),
  last_result: WakeResult,
  last_wake_at: maybeTimestamp,
  next_allowed_at: maybeTimestamp,
  policy_snapshot_id: v.optional(v.string()),
  session_id: v.string(),
  workspace_id: v.optional(v.string()),
  updated_at: Timestamp,
})
export type WakeState = v.InferOutput<typeof WakeState>
