/** Channels, their peers and subscriptions. */
import * as v from 'valibot'
import { Integer, JsonMap, maybeTimestamp, queryInteger } from '../kernel/common.js'
import { Session } from '../sessions/session.js'

const strings = v.array(v.string())

/** Self-description of a peer. */
export const PeerCard = v.object({
  artifacts_supported: strings,
  capabilities: v.array(v.object({ id: v.string(), summary: v.string() })),
  peer_id: v.string(),
  profiles_supported: strings,
  trust_modes_supported: strings,
  display_name: v.nullish(v.string()),
  ext: v.optional(JsonMap),
})
export type PeerCard = v.InferOutput<typeof PeerCard>

const peer = {
  peer_card: PeerCard,
  peer_id: v.string(),
  presence_state: v.string(),
  display_name: v.optional(v.string()),
  joined_at: maybeTimestamp,
  session_id: v.nullish(v.string()),
}

/** A participant of a channel. */
export const Peer = v.object({
  ...peer,
  channel: v.string(),
  local: v.boolean(),
  workspace_id: v.optional(v.string()),
})
export type Peer = v.InferOutput<typeof Peer>
export const ListPeersQuery = v.object({
  channel: v.optional(v.pipe(v.string(), v.description('only peers of this channel'))),
})
export const ListPeersReply = v.object({ peers: v.array(Peer) })

/** Message counts of a peer. */
export const PeerMetrics = v.object({
  delivered: v.optional(Integer),
  delivered_size_bytes: v.optional(Integer),
  received: v.optional(Integer),
  received_size_bytes: v.optional(Integer),
  rejected: v.optional(Integer),
  rejected_size_bytes: v.optional(Integer),
  sent: v.optional(Integer),
  sent_size_bytes: v.optional(Integer),
  total_size_bytes: v.optional(Integer),
})
export type PeerMetrics = v.InferOutput<typeof PeerMetrics>

/** A full capability. */
export const Capability = v.object({
  id: v.string(),
  outcome: v.string(),
  summary: v.string(),
  artifacts_expected: v.optional(strings),
  constraints: v.optional(strings),
  context_needed: v.optional(strings),
  digest: v.optional(v.string()),
  examples: v.optional(strings),
  execution_outline: v.optional(strings),
  requirements: v.optional(strings),
  version: v.optional(v.string()),
})
export type Capability = v.InferOutput<typeof Capability>

export const PeerReply = v.object({
  peer: v.object({
    ...peer,
    metrics: PeerMetrics,
    capability_catalog: v.nullish(v.object({ capabilities: v.array(Capability) })),
    channel: v.optional(v.string()),
    local: v.optional(v.boolean()),
  }),
})
export type PeerReply = v.InferOutput<typeof PeerReply>

const channel = {
  channel: v.string(),
  peer_count: Integer,
  coordinator_peer_id: v.optional(v.string()),
  created_at: maybeTimestamp,
  created_by: v.optional(v.string()),
  fanout_policy: v.optional(v.string()),
  historical_participant_count: v.optional(Integer),
  last_activity_at: maybeTimestamp,
  last_message_preview: v.optional(v.string()),
  last_presence_at: maybeTimestamp,
  local_peer_count: v.optional(Integer),
  message_count: v.optional(Integer),
  presence_count: v.optional(Integer),
  purpose: v.optional(v.string()),
  session_count: v.optional(Integer),
  workspace_id: v.optional(v.string()),
}

/** A channel for the peers of a workspace. */
export const Channel = v.object(channel)
export type Channel = v.InferOutput<typeof Channel>

export const ChannelDetail = v.object({
  ...channel,
  kind_counts: v.optional(v.array(v.object({ count: Integer, kind: v.string() }))),
  peers: v.optional(v.array(Peer)),
  sessions: v.optional(v.array(Session)),
})
export type ChannelDetail = v.InferOutput<typeof ChannelDetail>
export const ChannelReply = v.object({ channel: ChannelDetail })

/** A recently active thread or direct room. */
export const ChannelRecent = v.object({
  channel: v.string(),
  container_id: v.string(),
  surface: v.string(),
  last_activity_at: maybeTimestamp,
  last_message_preview: v.optional(v.string()),
  participant_count: v.optional(Integer),
  session_a: v.optional(v.string()),
  session_b: v.optional(v.string()),
  title: v.optional(v.string()),
})
export type ChannelRecent = v.InferOutput<typeof ChannelRecent>
export const ListChannelsQuery = v.object({
  recent_limit: v.optional(
    v.pipe(
      queryInteger(0, 100),
      v.description('how many conversations of all channels are listed, 0 to 100 (default 0)'),
    ),
  ),
})
export const ListChannelsReply = v.object({
  channels: v.array(Channel),
  recents: v.optional(v.array(ChannelRecent)),
})

const purpose = v.pipe(v.string(), v.maxLength(500))
export const FanoutPolicy = v.picklist(['capability_match', 'coordinator', 'all_members'])
export type FanoutPolicy = v.InferOutput<typeof FanoutPolicy>

export const CreateChannelBody = v.strictObject({
  channel: v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'Expected a channel like team-1')),
  agent_names: v.optional(
    v.pipe(strings, v.maxLength(20), v.description('agents that take part: a session of each is started')),
  ),
  coordinator_peer_id: v.optional(v.pipe(v.string(), v.description('the peer that leads the channel'))),
  fanout_policy: v.optional(v.pipe(FanoutPolicy, v.description('which peers a message to the channel is for'))),
  purpose: v.optional(purpose),
  workspace_id: v.optional(v.string()),
})
export type CreateChannelBody = v.InferOutput<typeof CreateChannelBody>

export const UpdateChannelBody = v.strictObject({
  coordinator_peer_id: v.nullish(v.pipe(v.string(), v.description('the peer that leads the channel'))),
  fanout_policy: v.nullish(v.pipe(FanoutPolicy, v.description('which peers a message to the channel is for'))),
  purpose: v.nullish(purpose),
})
export type UpdateChannelBody = v.InferOutput<typeof UpdateChannelBody>

export const SubscriptionMode = v.picklist(['all', 'mentions', 'muted'])
export type SubscriptionMode = v.InferOutput<typeof SubscriptionMode>

/** Delivery of a channel's or thread's messages to a session. */
export const Subscription = v.object({
  channel: v.string(),
  mode: v.string(),
  session_id: v.string(),
  created_at: maybeTimestamp,
  thread_id: v.optional(v.string()),
  updated_at: maybeTimestamp,
  workspace_id: v.optional(v.string()),
})
export type Subscription = v.InferOutput<typeof Subscription>
export const SubscriptionReply = v.object({ subscription: Subscription })
export const ListSubscriptionsReply = v.object({ subscriptions: v.array(Subscription) })
export const ListSubscriptionsQuery = v.object({
  session_id: v.optional(v.pipe(v.string(), v.description('only those of this session'))),
  thread_id: v.optional(v.pipe(v.string(), v.description('only those of this thread'))),
  limit: v.optional(v.pipe(queryInteger(1, 1000), v.description('maximum number, 1 to 1,000 (default 100)'))),
})
export type ListSubscriptionsQuery = v.InferOutput<typeof ListSubscriptionsQuery>

export const PutSubscriptionBody = v.strictObject({
  mode: v.pipe(SubscriptionMode, v.description('all messages, only those that mention it, or none')),
  session_id: v.pipe(v.string(), v.description('the subscribed session')),
  thread_id: v.optional(v.pipe(v.string(), v.description('only of this thread'))),
})
export type PutSubscriptionBody = v.InferOutput<typeof PutSubscriptionBody>
export const DeleteSubscriptionQuery = v.object({
  thread_id: v.optional(v.pipe(v.string(), v.description('that of this thread'))),
})
