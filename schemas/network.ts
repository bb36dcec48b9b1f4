/** Network schemas used by other areas. */
import * as v from 'valibot'
import { Integer } from './kernel/common.js'

/** The name of a channel in its workspace. */
const CHANNEL = /^[a-z0-9][a-z0-9_-]{0,63}$/

/** Limits of a live participation; durations as `90s`, `1h30m`. */
export const ParticipationBounds = v.strictObject({
  coalesce_window: v.optional(v.string()),
  max_input_tokens: v.optional(Integer),
  max_output_tokens: v.optional(Integer),
  max_total_wall_time: v.optional(v.string()),
  max_wake_depth: v.optional(Integer),
  max_wake_wall_time: v.optional(v.string()),
  max_wakes: v.optional(Integer),
})
export type ParticipationBounds = v.InferOutput<typeof ParticipationBounds>

/** Takes no part in the network; the default. */
export const LocalParticipationRequest = v.strictObject({ mode: v.optional(v.literal('local')) })
export type LocalParticipationRequest = v.InferOutput<typeof LocalParticipationRequest>

/** Takes part in a named channel. */
export const NamedParticipationRequest = v.strictObject({
  mode: v.literal('live'),
  channel_strategy: v.literal('named'),
  channel_id: v.pipe(v.string(), v.regex(CHANNEL, 'Expected a channel like team-1')),
  bounds: v.optional(ParticipationBounds),
})
export type NamedParticipationRequest = v.InferOutput<typeof NamedParticipationRequest>

/** Takes part in a channel made for the run, or for the loop run. */
export const RunParticipationRequest = v.strictObject({
  mode: v.literal('live'),
  channel_strategy: v.picklist(['run', 'loop_run']),
  bounds: v.optional(ParticipationBounds),
})
export type RunParticipationRequest = v.InferOutput<typeof RunParticipationRequest>

/** Requested network participation of a session or run. */
export const ParticipationRequest = v.variant('mode', [
  LocalParticipationRequest,
  v.variant('channel_strategy', [NamedParticipationRequest, RunParticipationRequest]),
])
export type ParticipationRequest = v.InferOutput<typeof ParticipationRequest>

/** Source of the participation. */
export const ParticipationSource = v.picklist([
  'explicit_request',
  'task_profile',
  'workspace_coordination',
  'loop_definition',
  'automation_job',
  'built_in_local',
])
export type ParticipationSource = v.InferOutput<typeof ParticipationSource>

const version = v.literal('network-participation/v1')

/** No participation, and its source. */
export const LocalParticipation = v.object({ mode: v.literal('local'), source: ParticipationSource, version })
export type LocalParticipation = v.InferOutput<typeof LocalParticipation>

/** Participation in one channel, with all bounds resolved. */
export const LiveParticipation = v.object({
  bounds: v.object({
    coalesce_window: v.string(),
    max_input_tokens: Integer,
    max_output_tokens: Integer,
    max_total_wall_time: v.string(),
    max_wake_depth: Integer,
    max_wake_wall_time: v.string(),
    max_wakes: Integer,
  }),
  channel_id: v.string(),
  channel_strategy: v.picklist(['named', 'run', 'loop_run']),
  mode: v.literal('live'),
  source: ParticipationSource,
  version,
  workspace_id: v.string(),
})
export type LiveParticipation = v.InferOutput<typeof LiveParticipation>

/** Network participation of a session or run. */
export const ResolvedParticipation = v.variant('mode', [LocalParticipation, LiveParticipation])
export type ResolvedParticipation = v.InferOutput<typeof ResolvedParticipation>

/** A channel that a bundle declares; inventory only. */
export const DeclaredChannel = v.object({
  name: v.string(),
  activation_id: v.optional(v.string()),
  bundle_name: v.optional(v.string()),
  description: v.optional(v.string()),
  extension_name: v.optional(v.string()),
  primary: v.optional(v.boolean()),
  profile_name: v.optional(v.string()),
  workspace_id: v.optional(v.string()),
})
export type DeclaredChannel = v.InferOutput<typeof DeclaredChannel>

/** Message counts of one kind. */
export const NetworkKindMetrics = v.object({
  kind: v.string(),
  delivered: v.optional(Integer),
  received: v.optional(Integer),
  rejected: v.optional(Integer),
  sent: v.optional(Integer),
})
export type NetworkKindMetrics = v.InferOutput<typeof NetworkKindMetrics>

/** State of the network. */
export const NetworkStatus = v.object({
  channels: v.optional(Integer),
  conversation_messages: v.optional(Integer),
  declared_channels: v.optional(v.array(DeclaredChannel)),
  direct_resolves: v.optional(Integer),
  enabled: v.boolean(),
  handoff_tagged_events: v.optional(Integer),
  kind_metrics: v.optional(v.array(NetworkKindMetrics)),
  local_peers: v.optional(Integer),
  messages_delivered: v.optional(Integer),
  messages_received: v.optional(Integer),
  messages_rejected: v.optional(Integer),
  messages_sent: v.optional(Integer),
  open_direct_rooms: v.optional(Integer),
  open_threads: v.optional(Integer),
  open_work_items: v.optional(Integer),
  status: v.string(),
  work_transitions: v.optional(Integer),
  workflow_tagged_events: v.optional(Integer),
})
export type NetworkStatus = v.InferOutput<typeof NetworkStatus>
export const NetworkStatusReply = v.object({ network: NetworkStatus })
export type NetworkStatusReply = v.InferOutput<typeof NetworkStatusReply>
