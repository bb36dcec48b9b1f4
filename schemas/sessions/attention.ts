/** Presence of viewers, and sessions that need attention. */
import * as v from 'valibot'
import { Integer } from '../kernel/common.js'

/** POST …/presence: a viewer starts or stops viewing the session; `lease_id` is that of the previous reply. */
export const PresenceBody = v.strictObject({ visible: v.boolean(), lease_id: v.optional(v.string()) })
export type PresenceBody = v.InferOutput<typeof PresenceBody>

/** POST …/presence: the lease, which the viewer renews within a minute. */
export const PresenceReply = v.object({ lease_id: v.string() })
export type PresenceReply = v.InferOutput<typeof PresenceReply>

/** Counts of sessions whose agent waits for a person, and of sessions with unseen results. */
const Counts = { needs_you: Integer, finished: Integer }

/** GET /api/sessions/attention-summary. */
export const AttentionSummaryReply = v.object({
  ...Counts,
  by_workspace: v.array(v.object({ workspace_id: v.string(), ...Counts })),
})
export type AttentionSummaryReply = v.InferOutput<typeof AttentionSummaryReply>

/** A change of the session list; `reset`: changes were lost, so read the list again. */
export const CatalogChange = v.object({
  kind: v.picklist(['created', 'updated', 'stopped', 'removed', 'reset']),
  session_id: v.string(),
  workspace_id: v.string(),
})
export type CatalogChange = v.InferOutput<typeof CatalogChange>

/** One frame of GET /api/sessions/catalog-stream. */
export const CatalogFrame = v.object({ id: v.string(), event: v.string(), data: CatalogChange })
