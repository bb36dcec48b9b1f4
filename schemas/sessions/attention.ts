/** Who holds a session, who looks at it, and what wants to be looked at. */
import * as v from 'valibot'
import { Integer } from '../kernel/common.js'

/** POST …/presence: a viewer sees the session, or does so no longer; `lease_id` as it was answered before. */
export const PresenceBody = v.strictObject({ visible: v.boolean(), lease_id: v.optional(v.string()) })
export type PresenceBody = v.InferOutput<typeof PresenceBody>

/** POST …/presence: what the viewer names when it says so again, within a minute. */
export const PresenceReply = v.object({ lease_id: v.string() })
export type PresenceReply = v.InferOutput<typeof PresenceReply>

/** Sessions whose agent waits for a person, and those in which something ended that nobody has seen. */
const Counts = { needs_you: Integer, finished: Integer }

/** GET /api/sessions/attention-summary. */
export const AttentionSummaryReply = v.object({
  ...Counts,
  by_workspace: v.array(v.object({ workspace_id: v.string(), ...Counts })),
})
export type AttentionSummaryReply = v.InferOutput<typeof AttentionSummaryReply>

/** A change of the list of sessions; `reset`: read the list again, what happened to it is not known any more. */
export const CatalogChange = v.object({
  kind: v.picklist(['created', 'updated', 'stopped', 'removed', 'reset']),
  session_id: v.string(),
  workspace_id: v.string(),
})
export type CatalogChange = v.InferOutput<typeof CatalogChange>

/** One frame of GET /api/sessions/catalog-stream. */
export const CatalogFrame = v.object({ id: v.string(), event: v.string(), data: CatalogChange })
