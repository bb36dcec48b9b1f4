/** Rewinding and forking conversations. */
import * as v from 'valibot'
import { Integer } from '../kernel/common.js'
import { SessionDetail } from './runtime.js'

/**
 * POST …/rewind: removes a prompt and everything after it. The prompt is given by its transcript entry id or message id. The
 * expected values are those of a snapshot; null accepts any.
 */
export const RewindBody = v.strictObject({
  message_id: v.pipe(v.string(), v.minLength(1), v.maxLength(200)),
  idempotency_key: v.pipe(v.string(), v.minLength(1), v.maxLength(200)),
  expected_epoch: v.nullable(Integer),
  expected_generation: v.nullable(Integer),
  expected_max_sequence: v.nullable(Integer),
})
export type RewindBody = v.InferOutput<typeof RewindBody>

/** POST …/worktree-fork into a new or an existing worktree of the repository. */
export const ForkSessionBody = v.strictObject({
  confirmed: v.boolean(),
  new_worktree: v.nullish(v.strictObject({ name: v.optional(v.string()) })),
  worktree: v.optional(v.string()),
})
export type ForkSessionBody = v.InferOutput<typeof ForkSessionBody>

/** POST …/rewind: the removed part, the text of the prompt, and files changed by the removed turns, which are not reverted. */
export const RewindSessionReply = v.object({
  rewind: v.object({
    archived_event_count: Integer,
    archived_from_sequence: Integer,
    archived_through_sequence: Integer,
    /** Only changes reported by the agent. */
    changed_files: v.optional(v.array(v.string())),
    draft_text: v.string(),
    generation: Integer,
    max_sequence: Integer,
    replayed: v.boolean(),
    target_message_id: v.string(),
    transcript_epoch: Integer,
  }),
  session: SessionDetail,
})
export type RewindSessionReply = v.InferOutput<typeof RewindSessionReply>
