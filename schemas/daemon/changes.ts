import * as v from 'valibot'
import { queryInteger, Timestamp } from '../kernel/common.js'

/** A changing request, as it would be sent. */
export const PlanBody = v.strictObject({
  method: v.picklist(['POST', 'PUT', 'PATCH', 'DELETE']),
  /** Path and query below `/api/`. */
  path: v.pipe(v.string(), v.maxLength(8192)),
  body: v.optional(v.unknown()),
})
export type PlanBody = v.InferOutput<typeof PlanBody>

/** A member that a request would change; values as JSON, cut after 200 characters. */
export const PlannedMember = v.object({
  /** Dotted path. */
  member: v.string(),
  /** Absent if the member does not exist yet. */
  before: v.optional(v.string()),
  /** Absent if the member would be removed. */
  after: v.optional(v.string()),
})
export type PlannedMember = v.InferOutput<typeof PlannedMember>

/** The changes that a request would make. */
export const Plan = v.object({
  /**
   * Digest of the request and the current state of its subject. Sent as header `svc-plan`, it makes the request fail if the state
   * has changed.
   */
  digest: v.string(),
  method: v.string(),
  path: v.string(),
  /** Summary of the route. */
  summary: v.string(),
  /** The audit action, such as `jobs.changed`. */
  action: v.string(),
  subject: v.string(),
  /** Paths that returned the current state; absent if the request creates something. */
  reads: v.optional(v.array(v.string())),
  /** Whether these paths exist; absent if nothing was read. */
  exists: v.optional(v.boolean()),
  members: v.array(PlannedMember),
  /** Notes for people besides the members, such as a schedule in words. */
  notes: v.optional(v.array(v.string())),
  /** The request only reads or validates. */
  changes_nothing: v.boolean(),
  can_be_undone: v.boolean(),
  /** Why it cannot be undone. */
  reason: v.optional(v.string()),
})
export type Plan = v.InferOutput<typeof Plan>
export const PlanReply = v.object({ plan: Plan })

export const ChangeState = v.picklist(['undoable', 'kept', 'undone'])
export type ChangeState = v.InferOutput<typeof ChangeState>

/** A request that changed something, and whether it can be undone. */
export const ControlChange = v.object({
  /** Request id: `req_` and 16 hex digits. */
  id: v.string(),
  at: Timestamp,
  action: v.string(),
  subject: v.string(),
  request: v.string(),
  actor: v.object({ kind: v.string(), id: v.string() }),
  /** `undoable`; `kept`: cannot be undone, for the given `reason`; `undone`: by the request `undone_by`. */
  state: ChangeState,
  reason: v.optional(v.string()),
  undone_by: v.optional(v.string()),
})
export type ControlChange = v.InferOutput<typeof ControlChange>

export const ListChangesQuery = v.object({ limit: v.optional(queryInteger(1, 200)) })
export type ListChangesQuery = v.InferOutput<typeof ListChangesQuery>
/** The newest first. */
export const ListChangesReply = v.object({ changes: v.array(ControlChange) })

/** A change with its changed members. */
export const ControlChangeDetail = v.object({ ...ControlChange.entries, members: v.array(PlannedMember) })
export type ControlChangeDetail = v.InferOutput<typeof ControlChangeDetail>
export const ChangeReply = v.object({ change: ControlChangeDetail })

export const UndoBody = v.strictObject({
  force: v.optional(v.pipe(v.boolean(), v.description('undo it even if the same object was changed later'))),
})
export const UndoReply = v.object({
  change: ControlChange,
  /** The request that restored the previous state. */
  request: v.string(),
  /** Id of an object that was recreated under another id. */
  made: v.optional(v.string()),
  /** Id of the undoing change, which can be undone itself. */
  undone_by: v.string(),
  /** Members that could not be restored. */
  differs: v.array(v.string()),
  /** What the caller may have meant instead: a newer request of theirs of which no change is recorded. */
  notes: v.optional(v.array(v.string())),
})
export type UndoReply = v.InferOutput<typeof UndoReply>
