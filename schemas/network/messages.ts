/** Messages between agents, and their threads and direct rooms. */
import * as v from 'valibot'
import { Integer, JsonMap, maybeTimestamp, Page, queryBoolean, queryInteger, Timestamp } from '../kernel/common.js'

export const MessageKind = v.picklist(['greet', 'whois', 'say', 'capability', 'receipt', 'trace'])
export type MessageKind = v.InferOutput<typeof MessageKind>

export const Surface = v.picklist(['thread', 'direct'])
export type Surface = v.InferOutput<typeof Surface>

/** An addressed session that the message did not wake. */
export const NotWoken = v.object({
  peer_id: v.string(),
  reason: v.picklist(['not_live', 'depth_exceeded', 'budget_exhausted', 'network_disabled']),
  session_id: v.string(),
})
export type NotWoken = v.InferOutput<typeof NotWoken>

/** A message in a conversation. */
export const ConversationMessage = v.object({
  body: v.unknown(),
  channel: v.string(),
  direction: v.picklist(['sent', 'received', 'rejected', 'delivered']),
  kind: v.string(),
  message_id: v.string(),
  peer_from: v.string(),
  timestamp: Timestamp,
  causation_id: v.optional(v.string()),
  direct_id: v.optional(v.string()),
  display_name: v.optional(v.string()),
  intent: v.optional(v.string()),
  local: v.optional(v.boolean()),
  mentions: v.optional(v.array(v.string())),
  not_woken: v.optional(v.array(NotWoken)),
  peer_to: v.optional(v.string()),
  preview_text: v.optional(v.string()),
  reply_to: v.optional(v.string()),
  session_id: v.optional(v.string()),
  size_bytes: v.optional(Integer),
  surface: v.optional(v.string()),
  text: v.optional(v.string()),
  thread_id: v.optional(v.string()),
  trace_id: v.optional(v.string()),
  work_id: v.optional(v.string()),
  workspace_id: v.optional(v.string()),
})
export type ConversationMessage = v.InferOutput<typeof ConversationMessage>

/** A message as exchanged between peers. */
export const Envelope = v.object({
  body: v.unknown(),
  channel: v.string(),
  from: v.string(),
  id: v.string(),
  kind: v.string(),
  protocol: v.string(),
  ts: v.pipe(Integer, v.description('Unix seconds')),
  causation_id: v.nullish(v.string()),
  direct_id: v.nullish(v.string()),
  expires_at: v.pipe(v.nullish(Integer), v.description('Unix seconds')),
  ext: v.optional(JsonMap),
  mentions: v.optional(v.array(v.string())),
  proof: v.optional(JsonMap),
  reply_to: v.nullish(v.string()),
  surface: v.nullish(v.string()),
  thread_id: v.nullish(v.string()),
  to: v.nullish(v.string()),
  trace_id: v.nullish(v.string()),
  work_id: v.nullish(v.string()),
  workspace_id: v.optional(v.string()),
})
export type Envelope = v.InferOutput<typeof Envelope>

/** A message to send from a session. */
export const SendMessageBody = v.strictObject({
  body: JsonMap,
  channel: v.string(),
  kind: MessageKind,
  session_id: v.pipe(v.string(), v.description('the session that sends it')),
  causation_id: v.optional(v.string()),
  confirm_wakes: v.optional(
    v.pipe(v.boolean(), v.description('send it although it wakes more than 3 sessions; not for agents')),
  ),
  direct_id: v.optional(v.string()),
  expires_at: v.nullish(v.pipe(Integer, v.description('Unix seconds'))),
  ext: v.optional(JsonMap),
  id: v.optional(
    v.pipe(v.string(), v.description('default: a new one; the same id with the same content is sent once')),
  ),
  mentions: v.optional(v.pipe(v.array(v.string()), v.description('peers that it wakes, or `channel`: all of them'))),
  reply_to: v.optional(v.string()),
  surface: v.optional(Surface),
  thread_id: v.optional(v.pipe(v.string(), v.description('default on the surface thread: a new one'))),
  to: v.optional(v.pipe(v.string(), v.description('the peer that it is for'))),
  trace_id: v.optional(v.string()),
  work_id: v.optional(v.string()),
  workspace_id: v.optional(v.string()),
})
export type SendMessageBody = v.InferOutput<typeof SendMessageBody>

/** A sent message. */
export const SentMessage = v.object({
  channel: v.string(),
  id: v.string(),
  kind: v.string(),
  session_id: v.string(),
  causation_id: v.optional(v.string()),
  direct_id: v.optional(v.string()),
  expires_at: v.nullish(Integer),
  ext: v.optional(JsonMap),
  mentions: v.optional(v.array(v.string())),
  not_woken: v.optional(v.array(NotWoken)),
  reply_to: v.optional(v.string()),
  surface: v.optional(v.string()),
  thread_id: v.optional(v.string()),
  to: v.optional(v.string()),
  trace_id: v.optional(v.string()),
  work_id: v.optional(v.string()),
  workspace_id: v.optional(v.string()),
})
export type SentMessage = v.InferOutput<typeof SentMessage>
export const SendMessageReply = v.object({ message: SentMessage })

/** A conversation visible to all peers of a channel. */
export const Thread = v.object({
  channel: v.string(),
  message_count: Integer,
  open_work_count: Integer,
  participant_count: Integer,
  root_message_id: v.string(),
  thread_id: v.string(),
  coordination_cost: v.nullish(
    v.object({
      delivered_count: v.optional(Integer),
      estimated_prompt_tokens: v.optional(Integer),
      prompt_size_bytes: v.optional(Integer),
    }),
  ),
  last_activity_at: maybeTimestamp,
  last_message_preview: v.optional(v.string()),
  opened_at: maybeTimestamp,
  opened_by_peer_id: v.optional(v.string()),
  opened_session_id: v.optional(v.string()),
  title: v.optional(v.string()),
  workspace_id: v.optional(v.string()),
})
export type Thread = v.InferOutput<typeof Thread>
export const ListThreadsReply = v.object({ page: Page, threads: v.array(Thread) })

/** A task created from a thread. */
export const TaskLink = v.object({
  channel: v.string(),
  digest: v.string(),
  origin_message_id: v.string(),
  task_id: v.string(),
  thread_id: v.string(),
  created_at: maybeTimestamp,
  source_message_ids: v.optional(v.array(v.string())),
  updated_at: maybeTimestamp,
  workspace_id: v.optional(v.string()),
})
export type TaskLink = v.InferOutput<typeof TaskLink>

/** Cost of a thread for a session that received its messages. */
export const SessionCost = v.object({
  session_id: v.string(),
  delivered_count: v.optional(Integer),
  estimated_prompt_tokens: v.optional(Integer),
  first_delivered_at: maybeTimestamp,
  last_delivered_at: maybeTimestamp,
  prompt_size_bytes: v.optional(Integer),
})
export type SessionCost = v.InferOutput<typeof SessionCost>
export const ThreadReply = v.object({
  thread: Thread,
  session_costs: v.optional(v.array(SessionCost)),
  task_links: v.optional(v.array(TaskLink)),
})

/** A conversation between two sessions. */
export const Direct = v.object({
  channel: v.string(),
  direct_id: v.string(),
  message_count: Integer,
  open_work_count: Integer,
  session_a: v.string(),
  session_b: v.string(),
  last_activity_at: maybeTimestamp,
  last_message_preview: v.optional(v.string()),
  opened_at: maybeTimestamp,
  workspace_id: v.optional(v.string()),
})
export type Direct = v.InferOutput<typeof Direct>
export const DirectReply = v.object({ direct: Direct })
export const ListDirectsReply = v.object({ directs: v.array(Direct), page: Page })
export const ResolveDirectBody = v.strictObject({
  peer_id: v.pipe(v.string(), v.description('the other peer')),
  session_id: v.pipe(v.string(), v.description('the session whose room it is')),
})
export type ResolveDirectBody = v.InferOutput<typeof ResolveDirectBody>

export const ListMessagesReply = v.object({
  messages: v.array(ConversationMessage),
  page: v.object({ has_more: v.boolean(), limit: Integer, next_cursor: v.optional(v.string()) }),
})

const limit = v.optional(v.pipe(queryInteger(1, 500), v.description('maximum number, 1 to 500 (default 50)')))

/** Filter of a channel's conversations. */
export const ListContainersQuery = v.object({
  session_id: v.optional(v.pipe(v.string(), v.description('only those that this session takes part in'))),
  query: v.optional(v.pipe(v.string(), v.maxLength(200), v.description('text to find in the title or newest message'))),
  has_work: v.optional(v.pipe(queryBoolean(), v.description('only those with, or without, open work'))),
  sort: v.optional(v.pipe(v.picklist(['recent', 'oldest']), v.description('by newest activity (default), or by age'))),
  after: v.optional(v.pipe(v.string(), v.description('cursor of the page before'))),
  limit,
})
export type ListContainersQuery = v.InferOutput<typeof ListContainersQuery>

/** Filter of a conversation's messages, the oldest first. */
export const ListMessagesQuery = v.object({
  before: v.optional(v.pipe(v.string(), v.description('only messages before this one, by its id'))),
  after: v.optional(v.pipe(v.string(), v.description('only messages after this one, by its id'))),
  kind: v.optional(v.pipe(v.string(), v.description('only messages of this kind'))),
  work_id: v.optional(v.pipe(v.string(), v.description('only messages of this work'))),
  limit,
})
export type ListMessagesQuery = v.InferOutput<typeof ListMessagesQuery>

export const InboxQuery = v.object({ session_id: v.pipe(v.string(), v.description('the session whose inbox it is')) })
export const InboxReply = v.object({ messages: v.array(Envelope) })

export const WorkState = v.picklist(['submitted', 'working', 'needs_input', 'completed', 'failed', 'canceled'])
export type WorkState = v.InferOutput<typeof WorkState>

/** Work that one peer does for another. */
export const Work = v.object({
  channel: v.string(),
  state: WorkState,
  surface: Surface,
  work_id: v.string(),
  direct_id: v.optional(v.string()),
  last_activity_at: maybeTimestamp,
  opened_at: maybeTimestamp,
  opened_session_id: v.optional(v.string()),
  target_session_id: v.optional(v.string()),
  terminal_at: maybeTimestamp,
  thread_id: v.optional(v.string()),
  workspace_id: v.optional(v.string()),
})
export type Work = v.InferOutput<typeof Work>
export const WorkReply = v.object({ work: Work })
