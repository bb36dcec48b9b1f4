/** Hooks in the settings API. */
import * as v from 'valibot'
import { HookEvent } from '../hooks.js'
import { Integer, StringMap } from '../kernel/common.js'
import { SettingsWriteTarget } from '../settings.js'

const text = v.optional(v.string())
const texts = <const N extends string>(...names: readonly N[]) =>
  Object.fromEntries(names.map(name => [name, text])) as { [K in N]: typeof text }

/** Conditions on the payload of an event; all must match. */
export const HookMatcher = v.strictObject({
  ...texts(
    'acp_event_type',
    'agent_name',
    'agent_type',
    'channel',
    'compaction_reason',
    'compaction_strategy',
    'decision_class',
    'direction',
    'input_class',
    'kind',
    'message_delta_type',
    'message_role',
    'participation_mode',
    'participation_source',
    'sandbox_backend',
    'sandbox_id',
    'sandbox_profile',
    'session_type',
    'surface',
    'sync_direction',
    'tool_id',
    'tool_name',
    'tool_namespace',
    'turn_id',
    'work_state',
    'workspace_id',
    'workspace_root',
  ),
  tool_read_only: v.nullish(v.boolean()),
  autonomy: v.nullish(
    v.strictObject(
      texts(
        'child_session_id',
        'coordinator_session_id',
        'loop_name',
        'loop_run_id',
        'node_id',
        'parent_session_id',
        'participation_channel',
        'release_reason',
        'root_session_id',
        'run_id',
        'spawn_role',
        'task_id',
        'workflow_id',
      ),
    ),
  ),
})

/** Source of an entry of a collection. */
export const EffectiveSource = v.object({
  agent_name: v.optional(v.string()),
  kind: v.picklist(['builtin-provider', ...SettingsWriteTarget.options]),
  scope: v.picklist(['global', 'workspace', 'agent']),
  workspace_id: v.optional(v.string()),
})
export type EffectiveSource = v.InferOutput<typeof EffectiveSource>

/** Source of an entry, the sources it shadows, and the files that a change can be written to. */
export const SourceMetadata = v.object({
  available_targets: v.array(SettingsWriteTarget),
  effective_source: EffectiveSource,
  shadowed_sources: v.optional(v.array(EffectiveSource)),
})
export type SourceMetadata = v.InferOutput<typeof SourceMetadata>

/** A hook declaration. */
export const HookDeclaration = v.strictObject({
  name: v.string(),
  args: v.optional(v.array(v.string())),
  command: v.optional(v.string()),
  enabled: v.nullish(v.boolean()),
  env: v.optional(StringMap),
  event: HookEvent,
  executor_kind: v.optional(v.picklist(['native', 'subprocess', 'wasm'])),
  matcher: HookMatcher,
  metadata: v.optional(StringMap),
  mode: v.optional(v.picklist(['sync', 'async'])),
  priority: v.optional(Integer),
  required: v.optional(v.boolean()),
  secret_env: v.optional(StringMap),
  timeout: v.optional(v.string()),
  /** Keep the program running and send it one JSON line per event, instead of starting it for each event. */
  warm: v.optional(v.boolean()),
  /** `claude`: the program was written for Claude Code. */
  format: v.optional(v.picklist(['svc', 'claude'])),
})

/** A declaration without a matcher matches every event of its name. */
export const PutHookBody = v.strictObject({
  declaration: v.strictObject({ ...HookDeclaration.entries, matcher: v.optional(HookMatcher, {}) }),
})
export type PutHookBody = v.InferOutput<typeof PutHookBody>

/** A hook and its source. */
export const HookEntry = v.object({
  name: v.string(),
  declaration: HookDeclaration,
  source_metadata: SourceMetadata,
})
export type HookEntry = v.InferOutput<typeof HookEntry>
