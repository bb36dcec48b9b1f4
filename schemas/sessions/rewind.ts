/** Conversations that are cut back. */
import * as v from 'valibot'
import { Integer } from '../kernel/common.js'
import { SessionDetail } from './runtime.js'

/**
 * POST …/rewind: back to before a prompt, named by the id of its entry in the transcript or by its message id. What is expected
 * of the transcript is that of a snapshot; null: whatever it is.
 */
export const RewindBody = v.strictObject({
  message_id: v.pipe(v.string(), v.minLength(1), v.maxLength(200)),
  idempotency_key: v.pipe(v.string(), v.minLength(1), v.maxLength(200)),
  expected_epoch: v.nullable(Integer),
  expected_generation: v.nullable(Integer),
  expected_max_sequence: v.nullable(Integer),
})
export type RewindBody = v.InferOutput<typeof RewindBody>

/** POST …/worktree-fork: in a new worktree, or in one that the repository has. */
export const ForkSessionBody = v.strictObject({
  confirmed: v.boolean(),
  new_worktree: v.nullish(v.strictObject({ name: v.optional(v.string()) })),
  worktree: v.optional(v.string()),
})
export type ForkSessionBody = v.InferOutput<typeof ForkSessionBody>

/** POST …/rewind: what was taken out, the text of the prompt, and the files that the removed turns changed and that stay so. */
export const RewindSessionReply = v.object({
  rewind: v.object({
    archived_event_count: Integer,
    archived_from_sequence: Integer,
    archived_through_sequence: Integer,
    /** As far as the agent told of them. */
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
