/** Members of section replies besides the configuration. */
import * as v from 'valibot'
import { Integer, maybeTimestamp } from '../kernel/common.js'
import { SkillDiagnostic } from '../skills.js'
import { HookEntry } from './hooks.js'

/** Names of settings sections in routes and replies. */
export const SettingsSection = v.picklist([
  'general',
  'memory',
  'roles',
  'skills',
  'automation',
  'network',
  'window-manager',
  'observability',
  'hooks-extensions',
  'cmd-palette',
  'attention',
  'shell',
])
export type SettingsSection = v.InferOutput<typeof SettingsSection>

/** Runtime state of a section without a subsystem. */
export const UnreadRuntime = v.object({
  available: v.literal(false),
  status: v.literal('unavailable'),
  reason: v.string(),
})

const RestartBehavior = v.picklist(['applied_now', 'restart_required', 'action_trigger'])
export const SettingsAction = v.object({ available: v.boolean(), behavior: RestartBehavior, name: v.string() })
export const SettingsLinks = v.array(v.object({ label: v.string(), path: v.string() }))

const agents = { active_agents: Integer, active_sessions: Integer }

export const GeneralMembers = {
  actions: v.object({ restart: SettingsAction }),
  config_paths: v.object({
    daemon_info: v.string(),
    global_config: v.string(),
    global_mcp_sidecar: v.string(),
    home_dir: v.string(),
    log_file: v.string(),
  }),
  runtime: v.object({
    ...agents,
    available: v.boolean(),
    http_host: v.optional(v.string()),
    http_port: v.optional(Integer),
    pid: v.optional(Integer),
    socket: v.optional(v.string()),
    started_at: maybeTimestamp,
    status: v.optional(v.string()),
    total_sessions: Integer,
    uptime_seconds: Integer,
    version: v.optional(v.string()),
  }),
}

export const AutomationMembers = {
  links: v.optional(SettingsLinks),
  runtime: v.object({
    available: v.boolean(),
    job_enabled: Integer,
    job_total: Integer,
    last_synced_at: maybeTimestamp,
    next_fire: maybeTimestamp,
    running: v.boolean(),
    scheduler_running: v.boolean(),
    trigger_enabled: Integer,
    trigger_total: Integer,
  }),
}

export const NetworkMembers = {
  links: v.optional(SettingsLinks),
  runtime: v.object({
    available: v.boolean(),
    enabled: v.boolean(),
    channels: Integer,
    local_peers: Integer,
    messages_delivered: Integer,
    messages_received: Integer,
    messages_rejected: Integer,
    status: v.optional(v.string()),
  }),
}

export const HooksExtensionsMembers = {
  hooks: v.optional(v.array(HookEntry)),
  installed: v.optional(
    v.array(
      v.object({
        name: v.string(),
        enabled: v.boolean(),
        health: v.optional(v.string()),
        health_message: v.optional(v.string()),
        last_error: v.optional(v.string()),
        missing_env: v.optional(v.array(v.string())),
        requires_env: v.optional(v.array(v.string())),
        state: v.optional(v.string()),
        version: v.optional(v.string()),
      }),
    ),
  ),
  transport_parity: v.object({
    extensions_http: v.boolean(),
    extensions_uds: v.boolean(),
    known: v.boolean(),
    settings_http: v.boolean(),
    settings_uds: v.boolean(),
  }),
}

export const ObservabilityMembers = {
  log_tail: v.object({
    available: v.boolean(),
    stream_url: v.optional(v.string()),
    transport: v.optional(v.literal('sse')),
  }),
  runtime: v.object({
    ...agents,
    available: v.boolean(),
    global_db_size_bytes: Integer,
    session_db_size_bytes: Integer,
    status: v.optional(v.string()),
    uptime_seconds: Integer,
  }),
}

export const SkillsMembers = {
  diagnostics: v.optional(v.array(SkillDiagnostic)),
  disabled_count: Integer,
  discovered_count: Integer,
  links: v.optional(SettingsLinks),
  runtime_available: v.boolean(),
}

export const MemoryMembers = {
  actions: v.object({ consolidate: SettingsAction }),
  health: v.object({
    available: v.boolean(),
    dream_enabled: v.boolean(),
    file_count: Integer,
    last_consolidated_at: maybeTimestamp,
  }),
  runtime: UnreadRuntime,
}

/** GET /api/settings/update. */
export const UpdateStateReply = v.object({
  available: v.boolean(),
  checked_at: maybeTimestamp,
  current_version: v.string(),
  install_method: v.string(),
  last_error: v.optional(v.string()),
  latest_version: v.optional(v.string()),
  managed: v.boolean(),
  recommendation: v.optional(v.string()),
  release_url: v.optional(v.string()),
  status: v.picklist(['current', 'available', 'updated', 'deferred', 'unsupported', 'failed']),
  supported: v.boolean(),
})
export type UpdateStateReply = v.InferOutput<typeof UpdateStateReply>

const Holder = v.object({
  executor_generation: v.string(),
  lease_expires_at: v.string(),
  pid: Integer,
  pid_start_time: v.string(),
  surface: v.picklist(['cli', 'daemon', 'web', 'shell']),
})
const UpdateTarget = v.picklist(['runtime', 'app'])

/** POST /api/settings/update/apply. */
export const ApplyUpdateBody = v.strictObject({ target: UpdateTarget })
export const ApplyUpdateReply = v.object({
  holder: v.nullish(Holder),
  message: v.string(),
  operation_id: v.optional(v.string()),
  status: v.picklist(['accepted', 'blocked', 'failed']),
  target: UpdateTarget,
})

/** POST /api/settings/update/cancel. */
export const CancelUpdateReply = v.object({
  holder: v.nullish(Holder),
  message: v.string(),
  operation_id: v.optional(v.string()),
  status: v.picklist([
    'up-to-date',
    'available',
    'accepted',
    'applying',
    'staged',
    'updated',
    'blocked',
    'unsupported',
    'failed',
    'canceled',
  ]),
})
