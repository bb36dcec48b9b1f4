import * as v from 'valibot'
import { Integer, Page, queryInteger, Timestamp } from '../kernel/common.js'

/** One change of the control plane. */
export const AuditEntry = v.object({
  /** Position in the chain, from 1, without gaps. */
  seq: Integer,
  at: Timestamp,
  /** `record.put`, `record.deleted`, `config.changed`, `audit.pruned`, or an event name. */
  action: v.string(),
  /** The changed object: `kind/id` of a record, else the subject of the event. */
  subject: v.string(),
  /** Version of the record after the change; of a removed record its last version. */
  version: v.optional(Integer),
  actor: v.object({ kind: v.string(), id: v.string() }),
  /** Channel of the actor's request. */
  origin: v.optional(v.string()),
  /** Session of the agent for which the operator acted, as `agent_session/<id>`. */
  on_behalf_of: v.optional(v.string()),
  /** Id of the request or event that caused it. */
  cause: v.optional(v.string()),
  /** Method and path template of that request. */
  request: v.optional(v.string()),
  /** Id of the corresponding event. */
  event: v.optional(v.string()),
  /** Keyed digests before and after the change: equal content in this home has equal digests. */
  before: v.optional(v.string()),
  after: v.optional(v.string()),
  /** SHA-256, hex, over the previous hash and all members above. */
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

/** Whether the chain is intact from its checkpoint to its newest entry. */
export const VerifyAuditReply = v.object({
  status: v.picklist(['ok', 'broken']),
  checked: Integer,
  /** The oldest and the newest kept entry; absent if there is none. */
  first: v.optional(Integer),
  last: v.optional(Integer),
  /** Hash of the newest entry: a copy kept elsewhere later proves that the chain up to here was not replaced. */
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

/** The causal chain from an outcome back to its origin. */
export const WhyReply = v.object({
  id: v.string(),
  chain: v.array(WhyStep),
  /** Whether the chain reaches its origin: a request, or the daemon itself. */
  complete: v.boolean(),
  /** Where the chain ends, and why. */
  end: v.string(),
})
export type WhyReply = v.InferOutput<typeof WhyReply>
