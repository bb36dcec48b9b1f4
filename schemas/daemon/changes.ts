import * as v from 'valibot'
import { queryInteger, Timestamp } from '../kernel/common.js'

/** A request that changes something, as it would be sent. */
export const PlanBody = v.strictObject({
  method: v.picklist(['POST', 'PUT', 'PATCH', 'DELETE']),
  /** Path and query below `/api/`. */
  path: v.pipe(v.string(), v.maxLength(8192)),
  body: v.optional(v.unknown()),
})
export type PlanBody = v.InferOutput<typeof PlanBody>

/** One member that a request would give another value; the values as JSON, cut after 200 characters. */
export const PlannedMember = v.object({
  /** Dotted path. */
  member: v.string(),
  /** Absent where there is no such member yet. */
  before: v.optional(v.string()),
  /** Absent where it would be removed. */
  after: v.optional(v.string()),
})
export type PlannedMember = v.InferOutput<typeof PlannedMember>

/** What a request would change. */
export const Plan = v.object({
  /** Digest of the request and of the present state of what it changes: as the header `svc-plan` of the request it refuses another state. */
  digest: v.string(),
  method: v.string(),
  path: v.string(),
  /** What the route does. */
  summary: v.string(),
  /** `jobs.changed`, as the audit calls it. */
  action: v.string(),
  subject: v.string(),
  /** Paths by which the present state was read; absent where the request makes something new. */
  reads: v.optional(v.array(v.string())),
  /** Whether there is something at these paths; absent where nothing was read. */
  exists: v.optional(v.boolean()),
  members: v.array(PlannedMember),
  /** What a person should know beside the members, such as a schedule in words. */
  notes: v.optional(v.array(v.string())),
  /** The request only reads, or checks what it is given. */
  changes_nothing: v.boolean(),
  can_be_undone: v.boolean(),
  /** Why it cannot be undone. */
  reason: v.optional(v.string()),
})
export type Plan = v.InferOutput<typeof Plan>
export const PlanReply = v.object({ plan: Plan })

export const ChangeState = v.picklist(['undoable', 'kept', 'undone'])
export type ChangeState = v.InferOutput<typeof ChangeState>

/** A request of the control plane that succeeded. */
export const ControlChange = v.object({
  /** Of the request: `req_` and 16 hex. */
  id: v.string(),
  at: Timestamp,
  action: v.string(),
  subject: v.string(),
  request: v.string(),
  actor: v.object({ kind: v.string(), id: v.string() }),
  /** `undoable`; `kept`: it cannot be undone, `reason` says why; `undone` by the request `undone_by`. */
  state: ChangeState,
  reason: v.optional(v.string()),
  undone_by: v.optional(v.string()),
})
export type ControlChange = v.InferOutput<typeof ControlChange>

export const ListChangesQuery = v.object({ limit: v.optional(queryInteger(1, 200)) })
export type ListChangesQuery = v.InferOutput<typeof ListChangesQuery>
/** The newest first. */
export const ListChangesReply = v.object({ changes: v.array(ControlChange) })

/** A change with what it changed. */
export const ControlChangeDetail = v.object({ ...ControlChange.entries, members: v.array(PlannedMember) })
export type ControlChangeDetail = v.InferOutput<typeof ControlChangeDetail>
export const ChangeReply = v.object({ change: ControlChangeDetail })

export const UndoBody = v.strictObject({
  /** Undoes it although what it changed was changed again since then. */
  force: v.optional(v.boolean()),
})
export const UndoReply = v.object({
  change: ControlChange,
  /** The request that put back what was there before. */
  request: v.string(),
  /** What was created again under another id. */
  made: v.optional(v.string()),
  /** Id of the change that undid it, which can be undone itself. */
  undone_by: v.string(),
  /** Members that are not as they were before. */
  differs: v.array(v.string()),
})
export type UndoReply = v.InferOutput<typeof UndoReply>
