/** Attention, notification presets, and notifications about ended tasks. */
import * as v from 'valibot'
import { DurationText } from './duration.js'
import { Integer, maybeTimestamp, queryBoolean, queryInteger, Timestamp } from './kernel/common.js'
import { mapOf } from './kernel/map-of.js'
import { TaskActor } from './tasks/definitions.js'

const some = (max: number) => v.pipe(v.string(), v.minLength(1), v.maxLength(max))

/** Name of a notification profile, which has its own receipts and enabled state. */
export const ProfileName = v.pipe(
  v.string(),
  v.regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'a name of a-z, 0-9, _ and -, at most 64 characters'),
)

export const PresetName = v.pipe(
  v.string(),
  v.regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'a name of a-z, 0-9, _ and -, at most 64 characters'),
)

/** Destination of a preset. */
export const PresetTarget = v.strictObject({
  bridge_id: v.pipe(some(128), v.description('id of a bridge, or its display name where no other bridge has it')),
  canonical_route: v.optional(
    v.pipe(
      some(512),
      v.description(
        'route such as group:#ops or peer:alice, or the name of a room or person; default: the default target of the bridge',
      ),
    ),
  ),
  delivery_mode: v.optional(v.picklist(['direct-send', 'reply'])),
  display_name: v.optional(some(200)),
})
export type PresetTarget = v.InferOutput<typeof PresetTarget>

const zone = v.pipe(v.string(), v.minLength(1), v.maxLength(64), v.description('IANA time zone'))
const timeOfDay = v.pipe(v.string(), v.regex(/^(?:[01]\d|2[0-3]):[0-5]\d$/, 'a time of day like 22:00'))

/** Hours in which messages are held back; one message afterwards summarises them. */
export const QuietHours = v.strictObject({ from: timeOfDay, to: timeOfDay, time_zone: zone })
export type QuietHours = v.InferOutput<typeof QuietHours>

const failures = v.pipe(Integer, v.minValue(1), v.maxValue(1000))
const pace = {
  after_failures: v.optional(
    v.pipe(failures, v.description('send a failure only after this many in a row for one subject')),
  ),
  only_on_change: v.optional(
    v.pipe(v.boolean(), v.description('send an event only if the previous one of its subject differs')),
  ),
}
const cooldown = v.optional(
  v.pipe(DurationText, v.description('minimum time between two messages about one subject; 0: none')),
)
const SubjectRules = v.strictObject({ ...pace, cooldown })

/** When a preset sends, besides its events and filter. */
export const PresetRules = v.strictObject({
  ...pace,
  cooldown,
  quiet_hours: v.optional(QuietHours),
  remind_after: v.optional(
    v.pipe(DurationText, v.description('time after which a question without an answer is sent once more; 0: never')),
  ),
  subjects: v.optional(
    v.pipe(
      mapOf(v.pipe(v.string(), v.minLength(1), v.maxLength(128)), SubjectRules),
      v.maxEntries(200),
      v.description('rules for single subjects by id: a job, a task, a session, a provider or a bridge'),
    ),
  ),
})
export type PresetRules = v.InferOutput<typeof PresetRules>

const events = v.pipe(v.array(v.pipe(v.string(), v.maxLength(200))), v.maxLength(50))
const filter = v.pipe(v.string(), v.maxLength(4096))
const targets = v.pipe(v.array(PresetTarget), v.maxLength(50))

/** Delivery state of a preset for one target. */
export const PresetTargetState = v.object({
  bridge_id: v.string(),
  bridge_name: v.optional(v.string()),
  canonical_route: v.optional(v.string()),
  display_name: v.optional(v.string()),
  /** Position in the event log up to which events are handled; absent if the preset is disabled. */
  position: v.optional(Integer),
  last_delivery_id: v.optional(v.string()),
  last_queued_at: v.optional(Timestamp),
  last_error: v.optional(v.string()),
  retry_at: v.optional(Timestamp),
})

export type PresetTargetState = v.InferOutput<typeof PresetTargetState>

/** A rule that sends selected events to rooms. */
export const Preset = v.object({
  name: v.string(),
  built_in: v.boolean(),
  enabled: v.boolean(),
  events: v.array(v.string()),
  filter: v.optional(v.string()),
  targets: v.array(PresetTarget),
  /** Display names of the targets. */
  target_names: v.array(v.string()),
  rules: v.optional(PresetRules),
  profile: v.optional(v.string()),
  default_hash: v.optional(v.string()),
  default_version: v.optional(v.string()),
  default_update_available: v.boolean(),
  user_modified: v.boolean(),
  target_states: v.optional(v.array(PresetTargetState)),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type Preset = v.InferOutput<typeof Preset>

export const ProfileQuery = v.strictObject({ profile: v.optional(ProfileName) })

export const ListPresetsQuery = v.strictObject({
  profile: v.optional(ProfileName),
  enabled: v.optional(queryBoolean()),
  built_in: v.optional(queryBoolean()),
  name: v.optional(v.string()),
  limit: v.optional(queryInteger(1, 1000)),
})
export type ListPresetsQuery = v.InferOutput<typeof ListPresetsQuery>

export const ListPresetsReply = v.object({ generated_at: Timestamp, presets: v.array(Preset), total: Integer })
export type ListPresetsReply = v.InferOutput<typeof ListPresetsReply>

export const PresetReply = v.object({ preset: Preset })
export type PresetReply = v.InferOutput<typeof PresetReply>

export const CreatePresetBody = v.strictObject({
  name: PresetName,
  events,
  filter: v.optional(filter),
  targets,
  enabled: v.optional(v.boolean()),
  rules: v.optional(PresetRules),
})
export type CreatePresetBody = v.InferOutput<typeof CreatePresetBody>

/** Absent or null members keep their values. */
export const UpdatePresetBody = v.strictObject({
  events: v.nullish(events),
  filter: v.nullish(filter),
  targets: v.nullish(targets),
  enabled: v.nullish(v.boolean()),
  rules: v.nullish(PresetRules),
})
export type UpdatePresetBody = v.InferOutput<typeof UpdatePresetBody>

export const EnablementBody = v.strictObject({ enabled: v.boolean(), profile: ProfileName })
export const PresetEnablement = v.object({ enabled: v.boolean(), name: v.string(), profile: v.string() })
export type PresetEnablement = v.InferOutput<typeof PresetEnablement>

/** Kinds of attention items. */
export const ATTENTION_KINDS = [
  'permission',
  'question',
  'approval',
  'failure',
  'blocked',
  'budget',
  'bridge',
  'provider',
  'delivery',
  'suggestion',
  'notice',
  'finished',
] as const

/** Actions that an item requests from a person. */
export const REQUEST_KINDS = ['decide', 'answer', 'approve', 'review', 'repair', 'login', 'resend', 'read'] as const

/** Something that needs a person, or that finished unseen. */
export const AttentionItem = v.object({
  id: v.string(),
  kind: v.picklist(ATTENTION_KINDS),
  request_kind: v.optional(v.picklist(REQUEST_KINDS)),
  source_id: v.string(),
  workspace_id: v.string(),
  workspace_label: v.string(),
  title: v.string(),
  detail: v.string(),
  badge: v.optional(v.string()),
  occurred_at: Timestamp,
  finished: v.boolean(),
  item_index: Integer,
  generation: Integer,
  redacted: v.boolean(),
  agent_name: v.optional(v.string()),
  run_id: v.optional(v.string()),
  session_id: v.optional(v.string()),
  task_id: v.optional(v.string()),
  terminal_id: v.optional(v.string()),
  loop_name: v.optional(v.string()),
  node_id: v.optional(v.string()),
  command: v.optional(v.pipe(v.string(), v.description('command to run next'))),
})
export type AttentionItem = v.InferOutput<typeof AttentionItem>

/** GET /api/notifications/attention: at most 100 items, the newest first; counts and snapshot cover all items. */
export const Attention = v.object({
  finished: Integer,
  needs_you: Integer,
  total: Integer,
  snapshot: v.string(),
  items: v.array(AttentionItem),
  /** The number of unlisted items. */
  notes: v.optional(v.array(v.string())),
})
export type Attention = v.InferOutput<typeof Attention>

const view = {
  receipt_profile: v.optional(v.pipe(ProfileName, v.description('profile whose acknowledgements count'))),
  workspace: v.optional(
    v.pipe(
      v.string(),
      v.maxLength(4096),
      v.description('items of this workspace (id, name or path); empty: items of none; absent: all items'),
    ),
  ),
  profile: v.optional(v.pipe(ProfileName, v.description('items that this profile has not acknowledged'))),
  all_profiles: v.optional(
    v.pipe(queryBoolean(), v.description('items that at least one profile has not acknowledged, labelled with it')),
  ),
  surface: v.optional(
    v.pipe(v.picklist(['bell', 'home']), v.description('where it was acknowledged; default: bell')),
    'bell' as const,
  ),
}
export const AttentionQuery = v.strictObject(view)
export type AttentionQuery = v.InferOutput<typeof AttentionQuery>

export const AcknowledgeBody = v.strictObject({
  snapshot: v.pipe(v.string(), v.maxLength(128)),
  id: v.optional(v.pipe(v.string(), v.maxLength(300), v.description('only this item; default: all'))),
})
export type AcknowledgeBody = v.InferOutput<typeof AcknowledgeBody>

/** A room that is notified when a task ends. */
export const TaskSubscription = v.object({
  subscription_id: v.string(),
  task_id: v.string(),
  bridge_instance_id: v.string(),
  delivery_mode: v.picklist(['direct-send', 'reply']),
  scope: v.picklist(['global', 'workspace']),
  workspace_id: v.optional(v.string()),
  peer_id: v.optional(v.string()),
  group_id: v.optional(v.string()),
  thread_id: v.optional(v.string()),
  created_by: TaskActor,
  created_at: Timestamp,
  updated_at: Timestamp,
  cursor: v.object({
    consumer_id: v.string(),
    stream_name: v.string(),
    subject_id: v.string(),
    last_sequence: Integer,
    last_delivered_at: maybeTimestamp,
    last_delivery_id: v.optional(v.string()),
    last_error: v.optional(v.string()),
    updated_at: maybeTimestamp,
  }),
})
export type TaskSubscription = v.InferOutput<typeof TaskSubscription>

const address = v.optional(some(256))
export const SubscribeBody = v.strictObject({
  bridge_instance_id: some(128),
  delivery_mode: v.picklist(['direct-send', 'reply']),
  scope: v.picklist(['global', 'workspace']),
  workspace_id: v.optional(some(4096)),
  subscription_id: v.optional(
    v.pipe(v.string(), v.regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/, 'letters, digits, _, . and -, at most 64')),
  ),
  peer_id: address,
  group_id: address,
  thread_id: address,
})
export type SubscribeBody = v.InferOutput<typeof SubscribeBody>

export const ListSubscriptionsQuery = v.strictObject({
  bridge_instance_id: v.optional(v.string()),
  scope: v.optional(v.picklist(['global', 'workspace'])),
  workspace_id: v.optional(v.string()),
  limit: v.optional(queryInteger(1, 1000)),
})
export type ListSubscriptionsQuery = v.InferOutput<typeof ListSubscriptionsQuery>
export const ListSubscriptionsReply = v.object({ subscriptions: v.array(TaskSubscription) })
export const SubscriptionReply = v.object({ subscription: TaskSubscription })

/** POST /api/agent/notify. */
export const NotifyBody = v.strictObject({ title: some(200), body: v.optional(v.pipe(v.string(), v.maxLength(4000))) })
export type NotifyBody = v.InferOutput<typeof NotifyBody>
export const NotifyReply = v.object({
  outcome: v.pipe(v.picklist(['delivered', 'rate_limited']), v.description('rate_limited: send it again later')),
  retry_after_ms: v.optional(Integer),
})
export type NotifyReply = v.InferOutput<typeof NotifyReply>
