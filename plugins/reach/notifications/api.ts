/** `svc/plugins/notifications`: items that need a person, and notifications of rooms. */
import * as v from 'valibot'
import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors, event, registry, type Tx, token } from '../../../kernel/plugin.js'
import type { ATTENTION_KINDS, REQUEST_KINDS } from '../../../schemas/notifications.js'

export type AttentionKind = (typeof ATTENTION_KINDS)[number]
export type RequestKind = (typeof REQUEST_KINDS)[number]

/** An item that needs a person now, or that finished unseen. */
export interface AttentionEntry {
  /** `<source>:<subject>`, unique: `task:task_1`. */
  readonly id: string
  readonly kind: AttentionKind
  readonly requestKind?: RequestKind
  /** Id of its subject: a session, a task, a job … */
  readonly sourceId: string
  /** Changes when the same thing happens again, so that an earlier acknowledgement does not apply. */
  readonly generation: number
  /** Epoch milliseconds. */
  readonly occurredAt: number
  readonly title: string
  readonly detail?: string
  /** Whether it ended, so that a person may read it but nothing waits. */
  readonly isFinished?: boolean
  /** Absent: it belongs to no workspace. */
  readonly workspaceId?: string
  readonly agentName?: string
  readonly sessionId?: string
  readonly taskId?: string
  readonly runId?: string
  readonly terminalId?: string
  /** Command to run next. */
  readonly command?: string
}

/** Contributes items that need a person. */
export interface AttentionSource {
  /** Unique among sources. */
  readonly name: string
  /** Current items, unordered; at most 10,000. Called for each list, so it should read from memory. */
  readonly read: () => readonly AttentionEntry[]
}

/** Attention items of further plugins and extensions. */
export const AttentionSources = registry<AttentionSource>(
  'attention.sources@1',
  v.looseObject({ name: v.pipe(v.string(), v.minLength(1)), read: v.function() }),
)

/** A message of a preset for another place than a bridge. */
export interface ChannelMessage {
  /** Stays the same for an event. */
  readonly key: string
  /** Name of the event; `notifications.digest` for one message about several. */
  readonly type: string
  readonly text: string
  readonly sessionId?: string | undefined
  readonly taskId?: string | undefined
}

/** Another place than a bridge to which presets send: a target names it in place of a bridge. */
export interface NotificationChannel {
  /** Unique, and no id of a bridge: `browser`. */
  readonly name: string
  readonly displayName: string
  /** Why it takes no messages now. */
  readonly problem: () => string | undefined
  /** Takes a message in the transaction that moves the cursor of the target; returns why it does not. */
  readonly post: (t: Tx, message: ChannelMessage) => string | undefined
}

/** Places to which presets send, besides bridges. */
export const NotificationChannels = registry<NotificationChannel>(
  'notifications.channels@1',
  v.looseObject({
    name: v.pipe(v.string(), v.minLength(1)),
    displayName: v.string(),
    problem: v.function(),
    post: v.function(),
  }),
)

/** Notifications for other plugins. */
export interface NotificationsApi {
  /** All items that need a person or finished unseen, acknowledged or not; newest first. */
  entries(): readonly AttentionEntry[]
  /** Items not acknowledged in the default profile, of a workspace or all. Newest first. */
  unseen(workspaceId?: string): readonly AttentionEntry[]
}

export const Notifications = token<NotificationsApi>('notifications@1')

/** An agent sent a notice to people. */
export const AgentNotice = event(
  'agent.notice',
  v.object({
    notice_id: v.string(),
    session_id: v.string(),
    agent_name: v.string(),
    workspace_id: v.string(),
    title: v.string(),
    body: v.optional(v.string()),
  }),
)

/** An agent asks a person for a permission or an answer, and waits. */
export const AttentionAsked = event(
  'attention.asked',
  v.object({
    /** Id of the attention item, which disappears when it is answered. */
    item_id: v.string(),
    kind: v.picklist(['permission', 'question']),
    title: v.string(),
    detail: v.optional(v.string()),
    session_id: v.string(),
    agent_name: v.string(),
    workspace_id: v.string(),
    command: v.string(),
  }),
)

/** An agent's question expired without an answer. */
export const AttentionExpired = event(
  'attention.expired',
  v.object({
    /** Id of the question's former attention item. */
    item_id: v.string(),
    title: v.string(),
    session_id: v.string(),
    agent_name: v.string(),
    workspace_id: v.string(),
  }),
)

const presets = command('notifications presets list')
const help = command('notifications preset create', '--help')

export const NotificationErrors = defineErrors({
  preset_not_found: { status: 404, message: 'no such preset', next: presets },
  preset_duplicate_name: { status: 409, message: 'a preset has this name already', next: presets },
  preset_builtin_protected: {
    status: 409,
    message: 'a built-in preset cannot be deleted; disable it',
    next: command('notifications preset disable', placeholder('name')),
  },
  preset_limit: { status: 409, message: 'there are too many presets; delete one', next: presets },
  preset_events_invalid: { status: 400, message: 'not a pattern of events', next: help },
  preset_filter_invalid: { status: 400, message: 'the filter cannot be read', next: help },
  preset_rules_invalid: { status: 400, message: 'the rules are not valid', next: help },
  preset_target_ambiguous: {
    status: 422,
    message: 'the target names several bridges, or none of the rooms of its bridge',
    next: command('bridge list'),
  },
  preset_target_invalid: { status: 422, message: 'the target does not exist', next: command('bridge list') },
  attention_changed: {
    status: 409,
    message: 'the list has changed since this snapshot, or the snapshot belongs to another list; read it again',
    next: command('attention'),
  },
  attention_query_invalid: {
    status: 400,
    message: 'profile and all_profiles exclude each other',
    next: command('attention', '--help'),
  },
  attention_item_unknown: {
    status: 409,
    message: 'the list has no such item',
    next: command('attention'),
  },
  subscription_not_found: {
    status: 404,
    message: 'no such subscription of this task',
    next: command('task notification list', placeholder('task-id')),
  },
  subscription_invalid: {
    status: 400,
    message: 'the subscription is not valid',
    next: command('task notification add', '--help'),
  },
  subscription_exists: {
    status: 409,
    message: 'a subscription has this id already',
    next: command('task notification list', placeholder('task-id')),
  },
  notice_invalid: { status: 422, message: 'the notice is not valid', next: command('me notify', '--help') },
})
