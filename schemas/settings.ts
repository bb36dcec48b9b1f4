/** Settings: results of changes, apply records, and keys with their layers. */
import * as v from 'valibot'
import { Integer, maybeTimestamp, queryInteger, Timestamp } from './kernel/common.js'
import { DiagnosticItem } from './kernel/diagnostic.js'

/** The file that a change of settings was written to. */
export const SettingsWriteTarget = v.picklist([
  'global-config',
  'workspace-config',
  'global-mcp-sidecar',
  'workspace-mcp-sidecar',
  'global-agent-file',
  'workspace-agent-file',
])
export type SettingsWriteTarget = v.InferOutput<typeof SettingsWriteTarget>

/** When a change takes effect. */
export const ApplyLifecycle = v.picklist([
  'live',
  'live-add',
  'live-remove-if-unused',
  'restart-required',
  'session-rebind',
])
export type ApplyLifecycle = v.InferOutput<typeof ApplyLifecycle>

/** Outcome of a settings change. */
export const ApplyOutcome = v.object({
  active_config_hash: v.string(),
  active_generation: Integer,
  agent_name: v.optional(v.string()),
  applied: v.boolean(),
  apply_record_id: v.string(),
  lifecycle: ApplyLifecycle,
  next_action: v.picklist(['none', 'restart-daemon', 'new-session', 'retry']),
  partial_failures: v.optional(v.array(v.object({ diagnostic: DiagnosticItem, subsystem: v.string() }))),
  restart_required: v.optional(v.boolean()),
  restart_scope: v.optional(v.string()),
  scope: v.optional(v.picklist(['global', 'workspace', 'agent'])),
  section: v.optional(
    v.picklist([
      'general',
      'memory',
      'roles',
      'skills',
      'automation',
      'network',
      'window-manager',
      'observability',
      'hooks-extensions',
      'providers',
      'mcp-servers',
      'sandboxes',
      'hooks',
      'cmd-palette',
      'attention',
      'shell',
    ]),
  ),
  skipped: v.optional(v.boolean()),
  skipped_reason: v.optional(v.string()),
  warnings: v.optional(v.array(v.string())),
  workspace_id: v.optional(v.string()),
  write_target: v.optional(SettingsWriteTarget),
})
export type ApplyOutcome = v.InferOutput<typeof ApplyOutcome>

/** The step that completes a settings change. */
export const NextAction = v.picklist(['none', 'restart-daemon', 'new-session', 'retry'])
export type NextAction = v.InferOutput<typeof NextAction>

/** States of an apply record. */
export const ApplyStatus = v.picklist(['pending_apply', 'applied', 'blocked', 'failed'])
export type ApplyStatus = v.InferOutput<typeof ApplyStatus>

/** A settings change with its actor and outcome. */
export const ApplyEntry = v.object({
  id: v.string(),
  active_config_hash: v.string(),
  actor: v.string(),
  applied_at: maybeTimestamp,
  created_at: Timestamp,
  desired_config_hash: v.string(),
  diagnostics: v.optional(v.array(DiagnosticItem)),
  diff_class: ApplyLifecycle,
  generation: Integer,
  /** Changed keys, never their values. */
  keys: v.optional(v.array(v.string())),
  lifecycle: ApplyLifecycle,
  next_action: NextAction,
  status: ApplyStatus,
  updated_at: Timestamp,
  write_target: v.optional(SettingsWriteTarget),
})
export type ApplyEntry = v.InferOutput<typeof ApplyEntry>

/** GET /api/settings/apply. */
export const ListApplyQuery = v.object({
  status: v.optional(ApplyStatus),
  actor: v.optional(v.string()),
  limit: v.optional(queryInteger(0, 1000)),
})
export type ListApplyQuery = v.InferOutput<typeof ListApplyQuery>

/** GET /api/settings/apply. */
export const ListApplyReply = v.object({ entries: v.array(ApplyEntry) })
export type ListApplyReply = v.InferOutput<typeof ListApplyReply>

/** The value of a key in one layer. */
export const SettingLayer = v.object({
  layer: v.picklist(['default', 'file', 'overlay', 'environment']),
  /** `config.json:12`, or the name of an environment variable. */
  where: v.string(),
  value: v.unknown(),
})
export type SettingLayer = v.InferOutput<typeof SettingLayer>

/** A key with its effective value and source. */
export const SettingKey = v.object({
  key: v.string(),
  section: v.string(),
  value: v.unknown(),
  default: v.unknown(),
  /** The deciding layer. */
  source: v.string(),
  lifecycle: ApplyLifecycle,
  /** A value that takes effect at the next start. */
  pending: v.optional(v.unknown()),
  layers: v.optional(v.array(SettingLayer)),
  description: v.optional(v.string()),
  /** Allowed values, if they are few. */
  choices: v.optional(v.array(v.string())),
})
export type SettingKey = v.InferOutput<typeof SettingKey>

/** GET /api/settings/keys. */
export const ListKeysQuery = v.object({
  section: v.optional(v.pipe(v.string(), v.description('list only the keys of this section'))),
  workspace_id: v.optional(v.pipe(v.string(), v.description('show values as the sessions of this workspace see them'))),
  prefix: v.optional(v.pipe(v.string(), v.maxLength(256), v.description('list only keys with this prefix'))),
})
export type ListKeysQuery = v.InferOutput<typeof ListKeysQuery>

/** GET /api/settings/keys/{key}. */
export const KeyQuery = v.object({ workspace_id: v.optional(v.string()) })
export type KeyQuery = v.InferOutput<typeof KeyQuery>

/** GET /api/settings/keys. */
export const ListKeysReply = v.object({
  keys: v.array(SettingKey),
  generation: Integer,
  active_config_hash: v.string(),
})
export type ListKeysReply = v.InferOutput<typeof ListKeysReply>

/** PATCH /api/settings/keys: changes several keys of one file in a single write. A change without a value removes the key. */
export const PatchKeysBody = v.strictObject({
  changes: v.pipe(
    v.array(
      v.strictObject({
        key: v.pipe(v.string(), v.minLength(1), v.maxLength(256)),
        /** Name of a map entry. */
        name: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(128))),
        value: v.optional(v.unknown()),
      }),
    ),
    v.minLength(1),
    v.maxLength(100),
  ),
  target: v.optional(SettingsWriteTarget),
  workspace_id: v.optional(v.string()),
  agent_name: v.optional(v.string()),
  /** Report the result without writing. */
  dry_run: v.optional(v.boolean()),
})
export type PatchKeysBody = v.InferOutput<typeof PatchKeysBody>

/** POST /api/settings/validate: a text in the format of `config.json`. */
export const ValidateSettingsBody = v.strictObject({ text: v.pipe(v.string(), v.maxLength(1024 * 1024)) })
export type ValidateSettingsBody = v.InferOutput<typeof ValidateSettingsBody>

/** POST /api/settings/validate, and GET /api/settings/check of the current file. */
export const ValidateSettingsReply = v.object({
  valid: v.boolean(),
  /** The first problem, with its line. */
  problem: v.optional(v.string()),
  /** Keys with a value that takes effect at the next start. */
  pending: v.array(v.string()),
  /** Keys that no plugin owns. */
  unowned: v.array(v.string()),
  /** Invalid map entries, which are ignored, with their lines. */
  left_out: v.optional(v.array(v.string())),
})
export type ValidateSettingsReply = v.InferOutput<typeof ValidateSettingsReply>
