/** Messages of an agent in its session's channels, and live streams of channels. */
import * as v from 'valibot'
import { JsonMap, queryBoolean, queryInteger, Timestamp } from '../kernel/common.js'
import { CoordinationChannel } from '../tasks/run.js'
import { ConversationUsage, Task } from '../tasks.js'
import { ConversationMessage, NotWoken, TaskLink } from './messages.js'

export const CoordinationKind = v.picklist([
  'status',
  'request',
  'reply',
  'blocker',
  'handoff',
  'result',
  'review_request',
])
export type CoordinationKind = v.InferOutput<typeof CoordinationKind>

/** Subject of a coordination message. */
export const CoordinationMetadata = v.object({
  channel_id: v.string(),
  correlation_id: v.string(),
  ext: v.optional(JsonMap),
  message_kind: CoordinationKind,
  run_id: v.pipe(v.string(), v.description('empty: the sender is not working on a run')),
  task_id: v.pipe(v.string(), v.description('empty: the sender is not working on a run')),
  workflow_id: v.optional(v.string()),
})
export type CoordinationMetadata = v.InferOutput<typeof CoordinationMetadata>

const short = v.pipe(v.string(), v.maxLength(200))

/** Subject of a message as stated by the agent; omitted members come from its session. */
export const CoordinationAbout = v.strictObject({
  channel_id: v.optional(v.pipe(short, v.description('default: the channel of the request'))),
  correlation_id: v.optional(
    v.pipe(
      v.string(),
      v.minLength(1),
      v.maxLength(200),
      v.description('messages with the same id form one thread; default: the id of the message'),
    ),
  ),
  ext: v.optional(v.pipe(JsonMap, v.description('to_session_id: the session that the message is for, which it wakes'))),
  message_kind: CoordinationKind,
  run_id: v.optional(v.pipe(short, v.description('default: the run that the session works on'))),
  task_id: v.optional(v.pipe(short, v.description('default: the task of that run'))),
  workflow_id: v.optional(short),
})
export type CoordinationAbout = v.InferOutput<typeof CoordinationAbout>

/** A message in a channel of the session. */
export const CoordinationMessage = v.object({
  body: v.unknown(),
  channel_id: v.string(),
  from_session_id: v.string(),
  message_id: v.string(),
  metadata: CoordinationMetadata,
  timestamp: Timestamp,
  not_woken: v.optional(v.array(NotWoken)),
  to_session_id: v.optional(v.string()),
})
export type CoordinationMessage = v.InferOutput<typeof CoordinationMessage>

const said = {
  body: v.pipe(v.unknown(), v.description('a text, or any JSON')),
  idempotency_key: v.optional(
    v.pipe(
      v.string(),
      v.minLength(1),
      v.maxLength(200),
      v.description('idempotency key; the same message is sent only once'),
    ),
  ),
  metadata: CoordinationAbout,
}
/** POST /api/agent/channels/{channel}/send. */
export const AgentSendBody = v.strictObject(said)
export type AgentSendBody = v.InferOutput<typeof AgentSendBody>

/** POST /api/agent/channels/reply. */
export const AgentReplyBody = v.strictObject({
  ...said,
  reply_to_message_id: v.pipe(v.string(), v.maxLength(200), v.description('id of the message to answer')),
})
export type AgentReplyBody = v.InferOutput<typeof AgentReplyBody>

/** GET /api/agent/channels/{channel}/recv. */
export const AgentReceiveQuery = v.object({
  wait: v.optional(
    v.pipe(queryBoolean(), v.description('wait up to 25 s for a message when there is none; default: false')),
  ),
  limit: v.optional(v.pipe(queryInteger(0, 100), v.description('maximum number, 0 to 100 (default 20)'))),
  after: v.optional(
    v.pipe(
      v.string(),
      v.maxLength(200),
      v.description('id of the last message that the session has received: it and earlier ones are not returned again'),
    ),
  ),
})
export type AgentReceiveQuery = v.InferOutput<typeof AgentReceiveQuery>

export const AgentChannelsReply = v.object({ channels: v.array(CoordinationChannel) })
export const AgentMessageReply = v.object({ message: CoordinationMessage })
export const AgentMessagesReply = v.object({ messages: v.array(CoordinationMessage) })

/** GET …/network/watch. */
export const WatchQuery = v.object({
  channel: v.optional(v.pipe(v.string(), v.description('only this channel; default: all of the workspace'))),
  recent: v.optional(
    v.pipe(queryInteger(0, 100), v.description('how many of the newest messages come first, 0 to 100 (default 20)')),
  ),
})
export type WatchQuery = v.InferOutput<typeof WatchQuery>

/** GET /api/task-runs/{id}/conversation/stream. */
export const RunConversationQuery = v.object({
  after: v.optional(v.pipe(v.string(), v.maxLength(200), v.description('only messages after this one, by its id'))),
})
export type RunConversationQuery = v.InferOutput<typeof RunConversationQuery>

/** A change in the stream of a conversation. */
export const ConversationChange = v.object({
  message: v.nullish(ConversationMessage),
  usage: v.nullish(ConversationUsage),
})
export type ConversationChange = v.InferOutput<typeof ConversationChange>

/** POST …/threads/{thread_id}/promote-task. */
export const PromoteTaskBody = v.strictObject({
  description: v.optional(v.pipe(v.string(), v.description('default: the text of the message'))),
  metadata: v.optional(v.unknown()),
  origin_message_id: v.pipe(v.string(), v.maxLength(200), v.description('the message of the thread that requests it')),
  priority: v.optional(v.picklist(['low', 'medium', 'high', 'urgent'])),
  title: v.optional(v.pipe(v.string(), v.minLength(1), v.description('default: the first line of the message'))),
})
export type PromoteTaskBody = v.InferOutput<typeof PromoteTaskBody>
export const PromoteTaskReply = v.object({ origin: TaskLink, task: Task })

/** The change as a server-sent event; `id` is that of the message. */
export const ConversationFrame = v.object({
  id: v.optional(v.string()),
  event: v.picklist(['message', 'usage']),
  data: ConversationChange,
})
