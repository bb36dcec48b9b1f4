/** Whether future runs of a workspace or task coordinate in a channel. */
import * as v from 'valibot'
import { Integer, maybeTimestamp } from '../kernel/common.js'

export const CoordinationScope = v.picklist(['workspace', 'task'])
export type CoordinationScope = v.InferOutput<typeof CoordinationScope>

/** Whether to ask for coordination in the workspace of a run, and why; the first applicable reason. */
export const EligibilityReason = v.picklist([
  'already_enabled',
  'invitation_dismissed',
  'network_unavailable',
  'run_required',
  'run_inactive',
  'coordinator_required',
  'workers_required',
  'eligible',
])
export type EligibilityReason = v.InferOutput<typeof EligibilityReason>

export const Coordination = v.object({
  workspace_id: v.string(),
  scope: CoordinationScope,
  task_id: v.optional(v.string()),
  enabled: v.boolean(),
  /** 0 before the first change. */
  revision: Integer,
  updated_at: maybeTimestamp,
  updated_by: v.optional(v.string()),
  invitation: v.nullish(
    v.object({
      dismissed: v.boolean(),
      dismissed_at: maybeTimestamp,
      dismissed_by: v.optional(v.string()),
      scope: v.string(),
      task_id: v.optional(v.string()),
    }),
  ),
  eligibility: v.object({
    eligible: v.boolean(),
    reason: EligibilityReason,
    coordinator: v.boolean(),
    run_id: v.optional(v.string()),
    worker_count: Integer,
  }),
})
export type Coordination = v.InferOutput<typeof Coordination>
export const CoordinationReply = v.object({ coordination: Coordination })
export type CoordinationReply = v.InferOutput<typeof CoordinationReply>

const id = v.pipe(v.string(), v.minLength(1), v.maxLength(128))
const revision = v.pipe(Integer, v.minValue(0))

export const CoordinationQuery = v.object({
  scope: CoordinationScope,
  task_id: v.optional(id),
  run_id: v.optional(id),
})
export type CoordinationQuery = v.InferOutput<typeof CoordinationQuery>

const scoped = <const T extends v.ObjectEntries>(entries: T) =>
  v.variant('scope', [
    v.strictObject({ scope: v.literal('workspace'), run_id: v.optional(id), ...entries }),
    v.strictObject({ scope: v.literal('task'), task_id: id, run_id: v.optional(id), ...entries }),
  ])

export const PutCoordinationBody = scoped({ enabled: v.boolean(), expected_revision: revision })
export type PutCoordinationBody = v.InferOutput<typeof PutCoordinationBody>
export const PutInvitationBody = scoped({ dismissed: v.boolean(), expected_revision: revision })
export type PutInvitationBody = v.InferOutput<typeof PutInvitationBody>
