/** The schemas of settings that other areas need. */
import * as v from 'valibot'
import { Integer } from './kernel/common.js'
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

/** What became of a change of settings. */
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
    ]),
  ),
  skipped: v.optional(v.boolean()),
  skipped_reason: v.optional(v.string()),
  warnings: v.optional(v.array(v.string())),
  workspace_id: v.optional(v.string()),
  write_target: v.optional(SettingsWriteTarget),
})
export type ApplyOutcome = v.InferOutput<typeof ApplyOutcome>
