import { column, type RowOf, table } from '../../../kernel/kit/table.js'
import type { Migration } from '../../../kernel/plugin.js'
import type { PresetRules, PresetTarget } from '../../../schemas/notifications.js'

/** Tables of the plugin. */
export const migrations: readonly Migration[] = [
  {
    id: '001-presets',
    sql: `CREATE TABLE notifications_preset (
      name TEXT NOT NULL PRIMARY KEY, events TEXT NOT NULL, filter TEXT NOT NULL, targets TEXT NOT NULL, rules TEXT,
      built_in INTEGER NOT NULL, default_hash TEXT, default_version TEXT, user_modified INTEGER NOT NULL,
      created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE notifications_enablement (
      preset TEXT NOT NULL, profile TEXT NOT NULL, PRIMARY KEY (preset, profile)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE notifications_cursor (
      preset TEXT NOT NULL, target TEXT NOT NULL, seq INTEGER NOT NULL, failures INTEGER NOT NULL, retry_at INTEGER,
      last_error TEXT, last_delivery_id TEXT, last_queued_at INTEGER, PRIMARY KEY (preset, target)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE notifications_pace (
      preset TEXT NOT NULL, target TEXT NOT NULL, subject TEXT NOT NULL, failures INTEGER NOT NULL,
      last_event TEXT NOT NULL, sent_at INTEGER, at INTEGER NOT NULL, PRIMARY KEY (preset, target, subject)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX notifications_pace_at ON notifications_pace (at);`,
  },
  {
    id: '002-attention',
    sql: `CREATE TABLE notifications_receipt (
      profile TEXT NOT NULL, surface TEXT NOT NULL, item TEXT NOT NULL, generation INTEGER NOT NULL, at INTEGER NOT NULL,
      PRIMARY KEY (profile, surface, item)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX notifications_receipt_at ON notifications_receipt (at);
    CREATE TABLE notifications_notice (
      id TEXT NOT NULL PRIMARY KEY, session_id TEXT NOT NULL, agent_name TEXT NOT NULL, workspace_id TEXT NOT NULL,
      title TEXT NOT NULL, body TEXT NOT NULL, redacted INTEGER NOT NULL, at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX notifications_notice_at ON notifications_notice (at);
    CREATE INDEX notifications_notice_workspace ON notifications_notice (workspace_id);
    CREATE TABLE notifications_subscription (
      id TEXT NOT NULL PRIMARY KEY, task_id TEXT NOT NULL, bridge_id TEXT NOT NULL, delivery_mode TEXT NOT NULL,
      scope TEXT NOT NULL, workspace_id TEXT, peer_id TEXT, group_id TEXT, thread_id TEXT,
      created_by_kind TEXT NOT NULL, created_by_ref TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
      seq INTEGER NOT NULL, failures INTEGER NOT NULL, retry_at INTEGER, last_error TEXT, last_delivery_id TEXT,
      last_delivered_at INTEGER, cursor_at INTEGER, due TEXT
    ) STRICT;
    CREATE INDEX notifications_subscription_task ON notifications_subscription (task_id);
    CREATE INDEX notifications_subscription_due ON notifications_subscription (id) WHERE due IS NOT NULL;
    CREATE TABLE notifications_reminder (
      id TEXT NOT NULL PRIMARY KEY, preset TEXT NOT NULL, target TEXT NOT NULL, item TEXT NOT NULL, text TEXT NOT NULL,
      due_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX notifications_reminder_due ON notifications_reminder (due_at);
    CREATE TABLE notifications_trouble (
      id TEXT NOT NULL PRIMARY KEY, event_name TEXT NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, workspace_id TEXT,
      source_id TEXT NOT NULL, title TEXT NOT NULL, detail TEXT NOT NULL, agent_name TEXT, command TEXT
    ) STRICT;
    CREATE INDEX notifications_trouble_source ON notifications_trouble (source_id);
    CREATE INDEX notifications_trouble_workspace ON notifications_trouble (workspace_id);`,
  },
]

const { flag, integer, json, text, time } = column

/** Rules for sending events to rooms. */
export const presets = table('notifications_preset', {
  name: text(),
  events: json<readonly string[]>(),
  filter: text(),
  targets: json<readonly PresetTarget[]>(),
  rules: json<PresetRules>().optional(),
  built_in: flag(),
  /** Hash of the built-in definition that the preset was last created from. */
  default_hash: text().optional(),
  default_version: text().optional(),
  /** Whether a person changed the built-in preset, which stops its updates. */
  user_modified: flag(),
  created_at: time(),
  updated_at: time(),
})
export type PresetRow = RowOf<typeof presets>

/** The profiles in which a preset is enabled. */
export const enablements = table('notifications_enablement', { preset: text(), profile: text() })

/** Progress of a preset for each of its targets. */
export const cursors = table('notifications_cursor', {
  preset: text(),
  target: text(),
  seq: integer(),
  failures: integer(),
  retry_at: time().optional(),
  last_error: text().optional(),
  last_delivery_id: text().optional(),
  last_queued_at: time().optional(),
})
export type CursorRow = RowOf<typeof cursors>

/** State of a preset's rules per target and subject. */
export const paces = table('notifications_pace', {
  preset: text(),
  target: text(),
  subject: text(),
  failures: integer(),
  last_event: text(),
  sent_at: time().optional(),
  at: time(),
})
export type PaceRow = RowOf<typeof paces>

/** Acknowledged items per profile and surface, each with its generation. */
export const receipts = table('notifications_receipt', {
  profile: text(),
  surface: text<'bell' | 'home'>(),
  item: text(),
  generation: integer(),
  at: time(),
})

/** Notices of agents for people. */
export const notices = table('notifications_notice', {
  id: text(),
  session_id: text(),
  agent_name: text(),
  workspace_id: text(),
  title: text(),
  body: text(),
  redacted: flag(),
  at: time(),
})

/** Subscriptions of rooms to the end of a task. */
export const subscriptions = table('notifications_subscription', {
  id: text(),
  task_id: text(),
  bridge_id: text(),
  delivery_mode: text<'direct-send' | 'reply'>(),
  scope: text<'global' | 'workspace'>(),
  workspace_id: text().optional(),
  peer_id: text().optional(),
  group_id: text().optional(),
  thread_id: text().optional(),
  created_by_kind: text<'human' | 'agent_session' | 'automation' | 'extension' | 'network_peer' | 'daemon'>(),
  created_by_ref: text(),
  created_at: time(),
  updated_at: time(),
  seq: integer(),
  failures: integer(),
  retry_at: time().optional(),
  last_error: text().optional(),
  last_delivery_id: text().optional(),
  last_delivered_at: time().optional(),
  cursor_at: time().optional(),
  /** The end of the task to announce; absent: none. */
  due: json<TaskEnd>().optional(),
})
/** The end of a task. */
export interface TaskEnd {
  /** Position of its event. */
  readonly seq: number
  readonly event: string
  readonly text: string
}
export type SubscriptionRow = RowOf<typeof subscriptions>

/** Reminders that are sent unless the question is answered before. */
export const reminders = table('notifications_reminder', {
  id: text(),
  preset: text(),
  target: text(),
  item: text(),
  text: text(),
  due_at: time(),
})
export type ReminderRow = RowOf<typeof reminders>

/** Problems of subjects, by their newest events. */
export const troubles = table('notifications_trouble', {
  id: text(),
  event_name: text(),
  seq: integer(),
  at: time(),
  workspace_id: text().optional(),
  source_id: text(),
  title: text(),
  detail: text(),
  agent_name: text().optional(),
  command: text().optional(),
})
export type TroubleRow = RowOf<typeof troubles>
