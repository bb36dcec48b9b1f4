/** Prompts, their queue, and permissions. */
import * as v from 'valibot'
import { Integer, maybeTimestamp, Timestamp } from '../kernel/common.js'
import { GoalOutcome } from './goals.js'
import { RuntimeSelection } from './runtime.js'

/** Handling of a prompt during a turn: wait, cancel the turn, or be added to its next tool result. */
export const PromptMode = v.picklist(['queue', 'interrupt', 'steer'])
export type PromptMode = v.InferOutput<typeof PromptMode>

/** A message in the AI SDK form; of several, the last one of role `user` is the prompt. */
export const PromptMessage = v.strictObject({
  id: v.optional(v.string()),
  role: v.string(),
  content: v.optional(v.string()),
  parts: v.optional(v.array(v.strictObject({ type: v.optional(v.string()), text: v.optional(v.string()) }))),
})
export type PromptMessage = v.InferOutput<typeof PromptMessage>

const boundedText = (max: number) => v.pipe(v.string(), v.minLength(1), v.maxLength(max))

/** A person as identified by a platform. */
export const PromptedFor = v.strictObject({
  id: boundedText(256),
  name: boundedText(256),
  /** The platform, such as `slack`. */
  via: boundedText(64),
})

/**
 * POST …/prompt. The text is in `text`, `message` or `messages`; other members are optional. Missing ids are generated; only a
 * request with its own key can be replayed.
 */
export const PromptBody = v.strictObject({
  /** The person outside of the daemon who sent the prompt. */
  on_behalf_of: v.optional(PromptedFor),
  text: v.optional(v.string()),
  message: v.optional(v.string()),
  messages: v.optional(v.array(PromptMessage)),
  message_id: v.optional(v.string()),
  messageId: v.optional(v.string()),
  idempotency_key: v.optional(v.string()),
  mode: v.optional(PromptMode),
  /** Ids of stored files to attach. */
  attachments: v.optional(v.pipe(v.array(v.string()), v.maxLength(10))),
  runtime: v.nullish(RuntimeSelection),
})
export type PromptBody = v.InferOutput<typeof PromptBody>

/** Outcome of a prompt: sent, queued, staged, or replayed. */
export const PromptReceipt = v.object({
  canceled_queued_entries: v.optional(Integer),
  estimated_send_at: maybeTimestamp,
  fallback_mode_if_no_tool_result: v.optional(v.string()),
  goal: v.nullish(GoalOutcome),
  interrupted: v.optional(v.boolean()),
  mode: v.optional(v.string()),
  new_turn_id: v.optional(v.string()),
  previous_turn_id: v.optional(v.string()),
  queue_entry_id: v.optional(v.string()),
  queue_generation: v.optional(Integer),
  queue_position: v.optional(Integer),
  queued: v.optional(v.boolean()),
  staged: v.optional(v.boolean()),
  status: v.string(),
  idempotency_key: v.optional(v.string()),
  message_id: v.optional(v.string()),
  replayed: v.optional(v.boolean()),
})
export type PromptReceipt = v.InferOutput<typeof PromptReceipt>

/** POST …/prompt; the second form is the reply to a goal command. */
export const PromptReply = v.union([v.object({ prompt: PromptReceipt }), GoalOutcome])
export type PromptReply = v.InferOutput<typeof PromptReply>

/** DELETE of a queued prompt. */
export const PromptReceiptReply = v.object({ prompt: PromptReceipt })
export type PromptReceiptReply = v.InferOutput<typeof PromptReceiptReply>

/** POST …/prompt/cancel. */
export const CancelPromptReply = v.object({
  outcome: v.string(),
  session_id: v.string(),
  turn_id: v.optional(v.string()),
})
export type CancelPromptReply = v.InferOutput<typeof CancelPromptReply>

/** A file attached to a prompt; sizes in bytes and pixels. */
export const PromptAttachment = v.object({
  id: v.string(),
  kind: v.string(),
  name: v.string(),
  bytes: Integer,
  height: Integer,
  mime_type: v.string(),
  sha256: v.string(),
  width: Integer,
})
export type PromptAttachment = v.InferOutput<typeof PromptAttachment>

/** POST …/attachments. */
export const AttachmentReply = v.object({
  attachment: v.object({ ...PromptAttachment.entries, created_at: Timestamp }),
})
export type AttachmentReply = v.InferOutput<typeof AttachmentReply>

/** Source of a command. */
export const CommandSource = v.object({
  id: v.optional(v.string()),
  kind: v.string(),
  key: v.optional(v.string()),
  scope: v.string(),
})
export type CommandSource = v.InferOutput<typeof CommandSource>

/** A skill invocation in the text, with its position. */
export const SkillInvocation = v.object({
  name: v.string(),
  command_id: v.string(),
  end: Integer,
  source: CommandSource,
  start: Integer,
  token: v.string(),
})
export type SkillInvocation = v.InferOutput<typeof SkillInvocation>

/** A prompt queued until the turn ends. */
export const QueuedPrompt = v.object({
  id: v.string(),
  attachments: v.optional(v.array(PromptAttachment)),
  delivery: v.string(),
  enqueued_at: Timestamp,
  idempotency_key: v.optional(v.string()),
  message_id: v.optional(v.string()),
  mode: v.string(),
  queue_generation: Integer,
  runtime: v.nullish(RuntimeSelection),
  session_id: v.string(),
  skill_invocations: v.optional(v.array(SkillInvocation)),
  status: v.string(),
  target_turn_id: v.optional(v.string()),
  text: v.string(),
})
export type QueuedPrompt = v.InferOutput<typeof QueuedPrompt>

/** GET …/prompt/queue, the oldest first. */
export const ListQueuedPromptsReply = v.object({ inputs: v.array(QueuedPrompt) })
export type ListQueuedPromptsReply = v.InferOutput<typeof ListQueuedPromptsReply>

/** PUT …/prompt/queue/{queue_entry_id}: replaces the text of a queued prompt. */
export const PutQueuedPromptBody = v.strictObject({
  text: v.string(),
  message_id: v.string(),
  idempotency_key: v.string(),
})
export type PutQueuedPromptBody = v.InferOutput<typeof PutQueuedPromptBody>

/** PUT …/prompt/queue/{queue_entry_id}. */
export const QueuedPromptReply = v.object({ input: QueuedPrompt })
export type QueuedPromptReply = v.InferOutput<typeof QueuedPromptReply>

/** POST …/prompt/queue/{queue_entry_id}/steer: adds a queued prompt to the given turn. */
export const SteerQueuedPromptBody = v.strictObject({
  expected_turn_id: v.string(),
  text: v.string(),
  message_id: v.string(),
  idempotency_key: v.string(),
})
export type SteerQueuedPromptBody = v.InferOutput<typeof SteerQueuedPromptBody>

/** POST …/prompt/queue/{queue_entry_id}/steer. */
export const SteerQueuedPromptReply = v.object({
  prompt: v.object({
    ...PromptReceipt.entries,
    delivery: v.string(),
    idempotency_key: v.string(),
    message_id: v.string(),
    replayed: v.boolean(),
  }),
})
export type SteerQueuedPromptReply = v.InferOutput<typeof SteerQueuedPromptReply>

/** Answers to a permission request. */
export const PermissionDecision = v.picklist(['allow-once', 'allow-always', 'reject-once', 'reject-always'])
export type PermissionDecision = v.InferOutput<typeof PermissionDecision>

/** POST …/approve. */
export const ApproveBody = v.strictObject({
  request_id: v.string(),
  turn_id: v.string(),
  decision: PermissionDecision,
  /** A client rejects because it has no person to ask; the agent gets this as the reason. */
  unattended: v.optional(v.boolean()),
})
export type ApproveBody = v.InferOutput<typeof ApproveBody>

/** POST …/approve. */
export const ApproveReply = v.object({ status: v.string() })
export type ApproveReply = v.InferOutput<typeof ApproveReply>
