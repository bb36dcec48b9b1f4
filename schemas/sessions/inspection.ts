/** Pending interactions and the full state of one session. */
import * as v from 'valibot'
import { Integer, queryBoolean, Timestamp } from '../kernel/common.js'
import { PendingInteraction } from './runtime.js'
import { SessionHealth } from './session.js'
import { WakeReason, WakeResult, WakeState } from './wake.js'

/** Outcome of a question to a person; `orphaned`: its agent ended before the answer. */
export const InteractionStatus = v.picklist(['pending', 'orphaned', 'resolved', 'timed_out', 'canceled'])
export type InteractionStatus = v.InferOutput<typeof InteractionStatus>

/** GET …/interactions. */
export const ListInteractionsQuery = v.object({ status: v.optional(InteractionStatus) })
export type ListInteractionsQuery = v.InferOutput<typeof ListInteractionsQuery>

/** GET …/interactions: the newest ones, in ascending order. */
export const ListInteractionsReply = v.object({ interactions: v.array(PendingInteraction) })
export type ListInteractionsReply = v.InferOutput<typeof ListInteractionsReply>

/**
 * GET …/interactions/{interaction_id}: complete while it is pending, afterwards only the members that the journal
 * stores.
 */
export const InteractionReply = v.object({ interaction: PendingInteraction })
export type InteractionReply = v.InferOutput<typeof InteractionReply>

/** A notice about the agent's wake-up policy. */
export const PolicyDiagnostic = v.object({
  code: v.string(),
  column: v.optional(Integer),
  field: v.optional(v.string()),
  line: v.optional(Integer),
  message: v.string(),
  owner_surface: v.optional(v.string()),
  section: v.optional(v.string()),
  severity: v.picklist(['info', 'warning', 'error']),
  source_path: v.optional(v.string()),
})
export type PolicyDiagnostic = v.InferOutput<typeof PolicyDiagnostic>

/** One attempted wake-up. */
export const WakeEvent = v.object({
  id: v.string(),
  agent_name: v.optional(v.string()),
  policy_snapshot_id: v.optional(v.string()),
  reason: WakeReason,
  result: WakeResult,
  session_id: v.optional(v.string()),
  source: v.picklist(['scheduler', 'manual', 'harness_reentry']),
  synthetic_prompt_id: v.optional(v.string()),
  workspace_id: v.optional(v.string()),
  created_at: Timestamp,
  expires_at: Timestamp,
})
export type WakeEvent = v.InferOutput<typeof WakeEvent>

/** GET …/inspect. */
export const InspectSessionQuery = v.object({ include_recent_wake_events: v.optional(queryBoolean()) })
export type InspectSessionQuery = v.InferOutput<typeof InspectSessionQuery>

/** GET …/inspect. */
export const InspectSessionReply = v.object({
  config_digest: v.optional(v.string()),
  diagnostics: v.optional(v.array(PolicyDiagnostic)),
  health: SessionHealth,
  policy_digest: v.optional(v.string()),
  session_id: v.string(),
  wake_events: v.optional(v.array(WakeEvent)),
  wake_state: v.nullish(WakeState),
})
export type InspectSessionReply = v.InferOutput<typeof InspectSessionReply>
