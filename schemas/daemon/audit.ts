import * as v from 'valibot'
import { Integer, Page, queryInteger, Timestamp } from '../kernel/common.js'

/** One change of the control plane. */
export const AuditEntry = v.object({
  /** Position in the chain, from 1, without gaps. */
  seq: Integer,
  at: Timestamp,
  /** `record.put`, `record.deleted`, `config.changed`, `audit.pruned`, or the name of an event. */
  action: v.string(),
  /** What was changed: `kind/id` of a record, else what the event is about. */
  subject: v.string(),
  /** Of the record afterwards; of a removed one, the last. */
  version: v.optional(Integer),
  actor: v.object({ kind: v.string(), id: v.string() }),
  /** The way that the request of the actor came. */
  origin: v.optional(v.string()),
  /** Session of the agent for which the operator acted, as `agent_session/<id>`. */
  on_behalf_of: v.optional(v.string()),
  /** Id of the request or event that led to it. */
  cause: v.optional(v.string()),
  /** Method and path template of that request. */
  request: v.optional(v.string()),
  /** Id of the event that tells of it. */
  event: v.optional(v.string()),
  /** Keyed digests of what was there before and afterwards: equal content of this home has equal digests. */
  before: v.optional(v.string()),
  after: v.optional(v.string()),
  /** SHA-256, hex, of the hash before and of everything above. */
  hash: v.string(),
})
export type AuditEntry = v.InferOutput<typeof AuditEntry>

export const AuditQuery = v.object({
  actor: v.optional(v.string()),
  action: v.optional(v.string()),
  subject: v.optional(
    v.pipe(v.string(), v.description('what was changed: a kind, kind/id, or the id of a session, run, job or request')),
  ),
  since: v.optional(Timestamp),
  limit: v.optional(queryInteger(1, 500)),
  cursor: v.optional(v.string()),
})
export type AuditQuery = v.InferOutput<typeof AuditQuery>

/** Newest first. */
export const AuditReply = v.object({ entries: v.array(AuditEntry), page: Page })
export type AuditReply = v.InferOutput<typeof AuditReply>

export const VerifyAuditQuery = v.object({ expect: v.optional(v.string()) })

/** Whether the chain is whole, from its checkpoint to its newest entry. */
export const VerifyAuditReply = v.object({
  status: v.picklist(['ok', 'broken']),
  checked: Integer,
  /** The oldest entry that is kept, and the newest; absent while there is none. */
  first: v.optional(Integer),
  last: v.optional(Integer),
  /** Hash of the newest entry: whoever keeps it elsewhere finds out later whether the chain up to here was replaced. */
  head: v.optional(v.string()),
  broken: v.optional(v.object({ seq: Integer, problem: v.string() })),
})
export type VerifyAuditReply = v.InferOutput<typeof VerifyAuditReply>

export const WhyQuery = v.object({ id: v.pipe(v.string(), v.minLength(1), v.maxLength(300)) })

/** One step of a causal chain. */
export const WhyStep = v.object({
  id: v.string(),
  what: v.string(),
  subject: v.optional(v.string()),
  actor: v.optional(v.string()),
  /** Session of the agent for which the actor acted. */
  on_behalf_of: v.optional(v.string()),
  origin: v.optional(v.string()),
  at: v.optional(Timestamp),
})
export type WhyStep = v.InferOutput<typeof WhyStep>

/** From an outcome back to what began it. */
export const WhyReply = v.object({
  id: v.string(),
  chain: v.array(WhyStep),
  /** Whether the chain reaches its beginning: a request, or the daemon itself. */
  complete: v.boolean(),
  /** Where it ends, and why there. */
  end: v.string(),
})
export type WhyReply = v.InferOutput<typeof WhyReply>
